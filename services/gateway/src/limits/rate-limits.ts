import { errors, type OperatorReference, type ProjectId } from "@herald/contracts";
import { HeraldError } from "@herald/kit";
import { RateLimiterMemory, RateLimiterRes } from "rate-limiter-flexible";
import type { Caller } from "../auth/caller.ts";
import { type Policy, rateLimitHeaders, type State } from "./rate-limit-headers.ts";

/** Long enough to even out a burst, short enough that clients wait little and few addresses stay in memory. */
export const windowSeconds = 10;
/** A quota stops loops that run unnoticed; an hour is enough to notice and fix one. */
export const quotaSeconds = 3_600;
/** Each dry run reads the whole audience, so a loop must be stopped soon; a person who experiments can go on soon. */
export const dryRunSeconds = 60;

/** Looking up unknown credentials reads from the bus. The bus handles this many a second, for all addresses together, without effort. */
const lookupsPerSecond = 200;

/** People sign in a few times a day; a script that signs in for every call must not fill the sessions' bucket within their 8 hours. */
const signInsPerMinute = 60;

/** Requests are counted in windows of 10 seconds unless the name says otherwise. */
export type Limits = {
  /** Refused credentials and signatures. */
  readonly failuresPerAddress: number;
  /** Requests without a credential. */
  readonly anonymousPerAddress: number;
  readonly requestsPerToken: number;
  /** With all tokens of one project. */
  readonly requestsPerProject: number;
  readonly requestsPerDevice: number;
  /** Notifications of one project. */
  readonly sendsPerHour: number;
  /** Dry runs of one project. */
  readonly dryRunsPerMinute: number;
  /** New devices that register by client identity from one address. */
  readonly newDevicesPerHour: number;
};

/** Permission to register one new device from an address. Only registry knows whether the device is new. */
export type Reservation = {
  readonly granted: boolean;
  /** Returns the reservation, because the device was known. */
  readonly refund: () => Promise<void>;
  /** The error to answer when it was not granted. */
  readonly refusal: HeraldError;
};

/** Permission for some of the requested sends. */
export type Share = {
  readonly granted: number;
  /** Returns unused sends. */
  readonly refund: (count: number) => Promise<void>;
  /** The error to answer for the others. */
  readonly refusal: HeraldError;
};

export type RateLimits = {
  /** Counts a refusal of this address. Throws rate-limited when there were too many. */
  readonly countFailure: (address: string) => Promise<void>;
  /**
   * Runs a lookup that may end in a refusal. It counts as a refusal until it succeeds, so an address never has more lookups under way
   * than refusals left. Throws rate-limited without looking up.
   */
  readonly countWhileVerifying: <Found>(address: string, look: () => Promise<Found>) => Promise<Found>;
  /**
   * Runs work that counts as a refusal unless it succeeds. It runs even when the address had too many refusals; then a failure
   * becomes rate-limited.
   */
  readonly runUnverified: (address: string, work: () => Promise<void>) => Promise<void>;
  /** Counts a request without a credential. Throws rate-limited when there were too many. */
  readonly countAnonymous: (address: string) => Promise<void>;
  /** Reserves a registration for a device that may be new. */
  readonly reserveNewDevice: (address: string) => Promise<Reservation>;
  /** Counts a lookup on the bus for something that is not in memory. Throws rate-limited when there were too many. */
  readonly countLookup: () => Promise<void>;
  /** Counts a request of an authenticated caller. Returns the RateLimit headers; throws rate-limited when nothing is left. */
  readonly countRequest: (caller: Caller) => Promise<Readonly<Record<string, string>>>;
  /**
   * Counts `count` further requests of an authenticated caller, one for each notification of a batch. Throws rate-limited, and counts
   * none, when not all of them fit.
   */
  readonly countBatch: (caller: Caller, count: number) => Promise<Readonly<Record<string, string>>>;
  /** Counts up to `count` notifications, as many as the project may still send. */
  readonly reserveSends: (projectId: ProjectId, count: number) => Promise<Share>;
  /** Counts a session or sign-in code of an operator. Throws rate-limited when it made too many. */
  readonly countSignIn: (operatorId: OperatorReference) => Promise<void>;
  /** What the project has used in the current windows. */
  readonly usedBy: (projectId: ProjectId) => Promise<{ requests: number; sends: number; dryRuns: number }>;
  /** Counts a dry run. Throws quota-exceeded when the project has made too many. */
  readonly countDryRun: (projectId: ProjectId) => Promise<void>;
};

const stateOf = (policy: Policy, left: RateLimiterRes): State => ({
  policy,
  remaining: Math.max(0, left.remainingPoints),
  resetSeconds: Math.max(1, Math.ceil(left.msBeforeNext / 1000)),
});

const limited = (what: string, state: State, code: "rate-limited" | "quota-exceeded"): HeraldError => {
  const { limit, seconds } = state.policy;
  return new HeraldError(
    code,
    `${what}: at most ${limit} in ${seconds} s are accepted here; come back in ${state.resetSeconds} s`,
    { retryAfterSeconds: state.resetSeconds, headers: rateLimitHeaders([state]) },
  );
};

const limiter = (policy: Policy, what = "requests", code: "rate-limited" | "quota-exceeded" = "rate-limited") => {
  const memory = new RateLimiterMemory({ points: policy.limit, duration: policy.seconds });
  const consume = (key: string, count = 1): Promise<RateLimiterRes> =>
    memory.consume(key, count).catch((left: unknown) => {
      if (left instanceof RateLimiterRes) return left;
      throw left;
    });
  const take = async (key: string): Promise<Reservation> => {
    const taken = await consume(key);
    const granted = taken.consumedPoints <= policy.limit;
    return {
      granted,
      refund: async () => {
        if (granted) await memory.reward(key);
      },
      // Made when it is asked for: most requests are granted.
      get refusal() {
        return limited(what, stateOf(policy, taken), code);
      },
    };
  };
  return {
    take,
    takeSome: async (key: string, count: number): Promise<Share> => {
      const taken = await consume(key, count);
      const over = Math.min(count, Math.max(0, taken.consumedPoints - policy.limit));
      if (over > 0) await memory.reward(key, over);
      return {
        granted: count - over,
        refund: async (unused) => {
          if (unused > 0) await memory.reward(key, unused);
        },
        get refusal() {
          return limited(what, stateOf(policy, taken), code);
        },
      };
    },
    count: async (key: string): Promise<State> => {
      const taken = await consume(key);
      if (taken.consumedPoints > policy.limit) throw limited(what, stateOf(policy, taken), code);
      return stateOf(policy, taken);
    },
    countAll: async (key: string, count: number): Promise<State> => {
      const taken = await consume(key, count);
      if (taken.consumedPoints <= policy.limit) return stateOf(policy, taken);
      await memory.reward(key, count);
      throw limited(`${what}: each notification of a batch counts as one`, stateOf(policy, taken), code);
    },
    refund: async (key: string, count = 1): Promise<void> => {
      await memory.reward(key, count);
    },
    // What was refused counts in memory, and is no use of the limit.
    used: async (key: string): Promise<number> =>
      Math.min(policy.limit, Math.max(0, (await memory.get(key))?.consumedPoints ?? 0)),
  };
};

/** Limits of this process, in memory: each replica has limits of its own. Addresses are what `clientAddress` returns. */
export const createRateLimits = (limits: Limits): RateLimits => {
  // The names are public: clients see them in RateLimit-Policy.
  const perWindow = (name: string, limit: number) => limiter({ name, limit, seconds: windowSeconds });
  const failures = perWindow("failures", limits.failuresPerAddress);
  const anonymous = perWindow("clients", limits.anonymousPerAddress);
  const token = perWindow("token", limits.requestsPerToken);
  const project = perWindow("project", limits.requestsPerProject);
  const device = perWindow("device", limits.requestsPerDevice);
  const lookups = limiter({ name: "look-ups", limit: lookupsPerSecond, seconds: 1 });
  const sends = limiter(
    { name: "sends", limit: limits.sendsPerHour, seconds: quotaSeconds },
    "notifications",
    "quota-exceeded",
  );
  const dryRuns = limiter(
    { name: "dry-runs", limit: limits.dryRunsPerMinute, seconds: dryRunSeconds },
    "dry runs",
    "quota-exceeded",
  );
  const signIns = limiter({ name: "sign-ins", limit: signInsPerMinute, seconds: 60 }, "sessions of this operator");
  const newDevices = limiter(
    { name: "new-devices", limit: limits.newDevicesPerHour, seconds: quotaSeconds },
    "identifier: new devices from this address",
  );
  return {
    reserveNewDevice: (address) => newDevices.take(address),
    countFailure: async (address) => void (await failures.count(address)),
    countWhileVerifying: async (address, look) => {
      await failures.count(address);
      return look().finally(() => failures.refund(address));
    },
    runUnverified: async (address, work) => {
      const over = await failures.count(address).then(
        () => undefined,
        (error: unknown) => error,
      );
      try {
        await work();
      } catch (error) {
        // A failure on our side does not count against the address.
        if (error instanceof HeraldError && errors[error.code].status < 500) throw over ?? error;
        await failures.refund(address);
        throw error;
      }
      await failures.refund(address);
    },
    countAnonymous: async (address) => void (await anonymous.count(address)),
    countLookup: async () => void (await lookups.count("all")),
    countRequest: async (caller) => {
      // The token first: a request that it refuses takes nothing from the project's other tokens.
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
    countSignIn: async (operatorId) => void (await signIns.count(operatorId)),
    usedBy: async (projectId) => {
      const [requests, sent, dry] = await Promise.all([
        project.used(projectId),
        sends.used(projectId),
        dryRuns.used(projectId),
      ]);
      return { requests, sends: sent, dryRuns: dry };
    },
    countDryRun: async (projectId) => void (await dryRuns.count(projectId)),
    reserveSends: (projectId, count) => sends.takeSome(projectId, count),
  };
};
