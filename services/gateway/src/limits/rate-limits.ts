import { errors, type ProjectId } from "@herald/contracts";
import { HeraldError } from "@herald/kit";
import { RateLimiterMemory, RateLimiterRes } from "rate-limiter-flexible";
import type { Caller } from "../auth/caller.ts";
import { type Policy, rateLimitHeaders, type State } from "./rate-limit-headers.ts";

/** Long enough to even out a burst, short enough that nobody waits long and that few addresses are held in memory. */
const windowSeconds = 10;
/** A quota is against loops that nobody notices, and by the hour one is noticed and mended. */
const quotaSeconds = 3_600;
/** Each reads the whole audience, so that a loop is to be noticed soon; who tries things out comes back soon. */
const dryRunSeconds = 60;

/** Looking up unknown credentials reads from the bus; this many a second, for all addresses together, it does not notice. */
const lookUpsPerSecond = 200;

/** Requests that may be made; all but `sends`, `dryRuns` and `newDevices` in 10 seconds. */
export type Limits = {
  /** Refusals of credentials and signatures from one address. */
  readonly failures: number;
  /** Requests without a credential from one address. */
  readonly clients: number;
  /** With one project token. */
  readonly token: number;
  /** With all tokens of one project. */
  readonly project: number;
  /** With the credential of one device. */
  readonly device: number;
  /** Notifications of one project in an hour. */
  readonly sends: number;
  /** Dry runs of one project in a minute. */
  readonly dryRuns: number;
  /** New devices by client identity from one address in an hour. */
  readonly newDevices: number;
};

/** Room for one new device of an address. Only registry knows whether the device is new. */
export type Reservation = {
  readonly granted: boolean;
  /** Returns the reservation: the device was known. */
  readonly refund: () => Promise<void>;
  /** What to answer where there is none. */
  readonly refusal: HeraldError;
};

/** Room for some of the requested sends. */
export type Share = {
  readonly granted: number;
  /** Returns unused sends. */
  readonly refund: (count: number) => Promise<void>;
  /** What to answer for the others. */
  readonly refusal: HeraldError;
};

export type RateLimits = {
  /** Counts a refusal of this address. Throws rate-limited instead of letting it go on. */
  readonly countFailure: (address: string) => Promise<void>;
  /**
   * Looks up what may turn out to be a refusal, and counts as one until it is known: of an address that sends many at once, no more
   * are looked up than may be refused. Throws rate-limited instead of looking.
   */
  readonly countWhileVerifying: <Found>(address: string, look: () => Promise<Found>) => Promise<Found>;
  /**
   * Does work that counts as a refusal unless it succeeds. Where the address had too many it is done all the same, and rate-limited
   * takes the place of what it throws.
   */
  readonly runUnverified: (address: string, work: () => Promise<void>) => Promise<void>;
  /** Counts a request without a credential. Throws rate-limited when there were too many. */
  readonly countAnonymous: (address: string) => Promise<void>;
  /** Takes room for a device that may be new. */
  readonly reserveNewDevice: (address: string) => Promise<Reservation>;
  /** Counts a look-up on the bus for something that memory does not know. Throws rate-limited when there were too many. */
  readonly countLookup: () => Promise<void>;
  /** Counts a request of a caller who is known. Gives the fields that say what is left to it; throws rate-limited when nothing is. */
  readonly countRequest: (caller: Caller) => Promise<Readonly<Record<string, string>>>;
  /**
   * Counts a request of a caller who is known as so many more. Throws rate-limited when there is no room for all of them; none is
   * counted then.
   */
  readonly countBatch: (caller: Caller, count: number) => Promise<Readonly<Record<string, string>>>;
  /** Counts as many of so many notifications as the project may still send. */
  readonly reserveSends: (projectId: ProjectId, count: number) => Promise<Share>;
  /** Counts a dry run. Throws quota-exceeded when the project has made too many. */
  readonly countDryRun: (projectId: ProjectId) => Promise<void>;
};

const stateOf = (policy: Policy, left: RateLimiterRes): State => ({
  policy,
  remaining: Math.max(0, left.remainingPoints),
  resetSeconds: Math.max(1, Math.ceil(left.msBeforeNext / 1000)),
});

const limited = (what: string, state: State, code: "rate-limited" | "quota-exceeded"): HeraldError => {
  const { most, seconds } = state.policy;
  return new HeraldError(
    code,
    `${what}: at most ${most} in ${seconds} s are accepted here; come back in ${state.resetSeconds} s`,
    { retryAfterSeconds: state.resetSeconds, headers: rateLimitHeaders([state]) },
  );
};

const limiter = (policy: Policy, what = "requests", code: "rate-limited" | "quota-exceeded" = "rate-limited") => {
  const memory = new RateLimiterMemory({ points: policy.most, duration: policy.seconds });
  const consume = (key: string, count = 1): Promise<RateLimiterRes> =>
    memory.consume(key, count).catch((left: unknown) => {
      if (left instanceof RateLimiterRes) return left;
      throw left;
    });
  const take = async (key: string): Promise<Reservation> => {
    const taken = await consume(key);
    const granted = taken.consumedPoints <= policy.most;
    return {
      granted,
      refund: async () => {
        if (granted) await memory.reward(key);
      },
      refusal: limited(what, stateOf(policy, taken), code),
    };
  };
  return {
    take,
    takeSome: async (key: string, count: number): Promise<Share> => {
      const taken = await consume(key, count);
      const over = Math.min(count, Math.max(0, taken.consumedPoints - policy.most));
      if (over > 0) await memory.reward(key, over);
      return {
        granted: count - over,
        refund: async (unused) => {
          if (unused > 0) await memory.reward(key, unused);
        },
        refusal: limited(what, stateOf(policy, taken), code),
      };
    },
    count: async (key: string): Promise<State> => {
      const taken = await consume(key);
      if (taken.consumedPoints > policy.most) throw limited(what, stateOf(policy, taken), code);
      return stateOf(policy, taken);
    },
    countAll: async (key: string, count: number): Promise<State> => {
      const taken = await consume(key, count);
      if (taken.consumedPoints <= policy.most) return stateOf(policy, taken);
      await memory.reward(key, count);
      throw limited(`${what}: each notification of a batch counts as one`, stateOf(policy, taken), code);
    },
    refund: async (key: string, count = 1): Promise<void> => {
      await memory.reward(key, count);
    },
  };
};

/** Limits of this gateway alone, in memory: each replica allows as much again. Addresses come as `clientAddress` gives them. */
export const createRateLimits = (limits: Limits): RateLimits => {
  const of = (name: "failures" | "clients" | "token" | "project" | "device") =>
    limiter({ name, most: limits[name], seconds: windowSeconds });
  const [refused, client, token, project, device] = [
    of("failures"),
    of("clients"),
    of("token"),
    of("project"),
    of("device"),
  ];
  const lookUps = limiter({ name: "look-ups", most: lookUpsPerSecond, seconds: 1 });
  const sends = limiter(
    { name: "sends", most: limits.sends, seconds: quotaSeconds },
    "notifications",
    "quota-exceeded",
  );
  const dryRuns = limiter(
    { name: "dry-runs", most: limits.dryRuns, seconds: dryRunSeconds },
    "dry runs",
    "quota-exceeded",
  );
  const newDevices = limiter(
    { name: "new-devices", most: limits.newDevices, seconds: quotaSeconds },
    "identifier: new devices from this address",
  );
  return {
    reserveNewDevice: (address) => newDevices.take(address),
    countFailure: async (address) => void (await refused.count(address)),
    countWhileVerifying: async (address, look) => {
      await refused.count(address);
      return look().finally(() => refused.refund(address));
    },
    runUnverified: async (address, work) => {
      const over = await refused.count(address).then(
        () => undefined,
        (error: unknown) => error,
      );
      try {
        await work();
      } catch (error) {
        // What this side could not do is nobody's refusal.
        if (error instanceof HeraldError && errors[error.code].status < 500) throw over ?? error;
        await refused.refund(address);
        throw error;
      }
      await refused.refund(address);
    },
    countAnonymous: async (address) => void (await client.count(address)),
    countLookup: async () => void (await lookUps.count("all")),
    countRequest: async (caller) => {
      // The narrower one first: what it refuses is not taken from the other tokens of the project.
      if (caller.kind === "project")
        return rateLimitHeaders([await token.count(caller.tokenId), await project.count(caller.projectId)]);
      if (caller.kind === "device") return rateLimitHeaders([await device.count(caller.deviceId)]);
      return {};
    },
    countBatch: async (caller, count) => {
      if (caller.kind !== "project" || count === 0) return {};
      const own = await token.countAll(caller.tokenId, count);
      try {
        return rateLimitHeaders([own, await project.countAll(caller.projectId, count)]);
      } catch (error) {
        await token.refund(caller.tokenId, count);
        throw error;
      }
    },
    countDryRun: async (projectId) => void (await dryRuns.count(projectId)),
    reserveSends: (projectId, count) => sends.takeSome(projectId, count),
  };
};
