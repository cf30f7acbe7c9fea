import { errors, type ImportId, type NotificationId, type ProjectId } from "@herald/contracts";
import { HeraldError } from "@herald/kit";
import { RateLimiterMemory, type RateLimiterRes } from "rate-limiter-flexible";
import type { GatewayConfig } from "../config.ts";
import type { LimitsOfProject } from "../limits-of-project.ts";
import type { Caller, CallerOf } from "./caller.ts";

/** Long enough to even out a burst, short enough that clients wait little and few addresses stay in memory. */
export const windowSeconds = 10;
/** A quota stops loops that run unnoticed; an hour is enough to notice and fix one. */
export const quotaSeconds = 3_600;
/** Each dry run reads the whole audience, so a loop must be stopped quickly; a person who experiments can continue within a minute. */
export const dryRunSeconds = 60;

/** Looking up unknown credentials reads from the bus, which handles this many lookups a second, for all addresses, without effort. */
const lookupsPerSecond = 200;

/** A connection that breaks every half a minute may be continued. Each upload reads the stored lines again. */
const uploadsAgain = { count: 20, seconds: 600 };
/** Three times as fast as registry stores devices of 400 bytes. Reading this much takes the gateway less than half a second. */
const importedBytes = 64 * 1_048_576;

/** People sign in a few times a day; a script that signs in for every call must not fill the sessions' bucket within their 8 hours. */
const signInsPerMinute = 60;

/** Permission for some of the requested sends or registrations. */
export type Share = {
  readonly granted: number;
  /** Returns unused ones. */
  readonly refund: (count: number) => Promise<void>;
  /** The error to answer for the others. */
  readonly refusal: HeraldError;
};

const stateOf = (policy: Policy, left: RateLimiterRes): LimitState => ({
  policy,
  remaining: Math.max(0, policy.limit - left.consumedPoints),
  resetSeconds: Math.max(1, Math.ceil(left.msBeforeNext / 1000)),
});

const limited = (what: string, state: LimitState, code: "rate-limited" | "quota-exceeded"): HeraldError => {
  const { limit, seconds } = state.policy;
  return new HeraldError(
    code,
    `${what}: at most ${limit} in ${seconds} s are accepted here; retry in ${state.resetSeconds} s`,
    { retryAfterSeconds: state.resetSeconds, headers: rateLimitHeaders([state]) },
  );
};

/** Counts by keys. `limit` of a call: that of its key, which may change while it is counted. */
const limiter = (
  name: string,
  usual: number,
  seconds: number,
  what = "requests",
  code: "rate-limited" | "quota-exceeded" = "rate-limited",
) => {
  const memory = new RateLimiterMemory({ points: Number.MAX_SAFE_INTEGER, duration: seconds });
  const refusal = (taken: RateLimiterRes, limit: number, counted = what): HeraldError =>
    limited(counted, stateOf({ name, limit, seconds }, taken), code);
  return {
    takeSome: async (key: string, count: number, limit = usual): Promise<Share> => {
      const taken = await memory.consume(key, count);
      const over = Math.min(count, Math.max(0, taken.consumedPoints - limit));
      if (over > 0) await memory.reward(key, over);
      return {
        granted: count - over,
        refund: async (unused) => {
          if (unused > 0) await memory.reward(key, unused);
        },
        // Lazy, because most requests are granted.
        get refusal() {
          return refusal(taken, limit);
        },
      };
    },
    count: async (key: string, limit = usual): Promise<LimitState> => {
      const taken = await memory.consume(key);
      if (taken.consumedPoints > limit) throw refusal(taken, limit);
      return stateOf({ name, limit, seconds }, taken);
    },
    countAll: async (key: string, count: number, limit = usual): Promise<LimitState> => {
      const taken = await memory.consume(key, count);
      if (taken.consumedPoints <= limit) return stateOf({ name, limit, seconds }, taken);
      await memory.reward(key, count);
      throw refusal(taken, limit, `${what}: each notification of a batch counts as one`);
    },
    refund: async (key: string, count = 1): Promise<void> => {
      await memory.reward(key, count);
    },
    /** Counts without refusing. Resolves to the time until the window ends if the limit is used up, in ms; 0 otherwise. */
    delay: async (key: string, count: number): Promise<number> => {
      const { consumedPoints, msBeforeNext } = await memory.consume(key, count);
      return consumedPoints > usual ? msBeforeNext : 0;
    },
    // Refused requests are counted in memory too, but did not use the limit.
    used: async (key: string, limit: number): Promise<number> =>
      Math.min(limit, Math.max(0, (await memory.get(key))?.consumedPoints ?? 0)),
  };
};

export type RateLimits = ReturnType<typeof createRateLimits>;

/** Limits of this process, in memory: each replica has its own. Addresses are the results of `clientAddress`. */
export const createRateLimits = (config: GatewayConfig, { forAll, part }: Pick<LimitsOfProject, "forAll" | "part">) => {
  // The names are public: clients see them in RateLimit-Policy.
  const failures = limiter("failures", config.HERALD_GATEWAY_LIMIT_FAILURES, windowSeconds);
  const anonymous = limiter("clients", config.HERALD_GATEWAY_LIMIT_CLIENTS, windowSeconds);
  const token = limiter("token", forAll.token, windowSeconds);
  const project = limiter("project", forAll.project, windowSeconds);
  const device = limiter("device", forAll.device, windowSeconds);
  const lookups = limiter("look-ups", lookupsPerSecond, 1);
  const sends = limiter("sends", forAll.sends, quotaSeconds, "notifications", "quota-exceeded");
  const dryRuns = limiter("dry-runs", forAll["dry-runs"], dryRunSeconds, "dry runs", "quota-exceeded");
  const signIns = limiter("sign-ins", signInsPerMinute, 60, "sessions of this operator");
  const uploads = limiter("uploads", uploadsAgain.count, uploadsAgain.seconds, "uploads of this file");
  const imported = limiter("imported-bytes", importedBytes, windowSeconds);
  const maxNewDevices = config.HERALD_GATEWAY_LIMIT_NEW_DEVICES;
  /** One limit for all that an operator does, in whichever project. */
  const tokenLimit = ({ operator, projectId }: CallerOf<"project">) =>
    operator ? forAll.token : part(projectId, "token");
  const newDevices = limiter("new-devices", maxNewDevices, quotaSeconds, "identifier: new devices from this address");
  return {
    /** Reserves a registration for a device that may be new: only registry knows. */
    reserveNewDevice: (address: string) => newDevices.takeSome(address, 1),
    /** Counts a refusal of this address. Throws rate-limited after too many. */
    countFailure: async (address: string) => void (await failures.count(address)),
    /**
     * Runs a lookup that may end in a refusal. It counts as a refusal until it succeeds, so an address never has more lookups in progress
     * than refusals left. Throws rate-limited before the lookup.
     */
    countWhileVerifying: async <Found>(address: string, look: () => Promise<Found>): Promise<Found> => {
      await failures.count(address);
      return look().finally(() => failures.refund(address));
    },
    /**
     * Runs work that counts as a refusal unless it succeeds. Work runs even after too many refusals of the address; its failure then
     * becomes rate-limited.
     */
    runUnverified: async (address: string, work: () => Promise<void>) => {
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
    /** Counts a request without a credential. Throws rate-limited after too many. */
    countAnonymous: async (address: string) => void (await anonymous.count(address)),
    /** Counts a read from the bus for a record that is not in memory. Throws rate-limited after too many. */
    countLookup: async () => void (await lookups.count("all")),
    /** Counts a request of an authenticated caller. Returns the RateLimit headers. Throws rate-limited when the limit is used up. */
    countRequest: async (caller: Caller) => {
      // The token first: a request refused by its token's limit does not count for the project's other tokens.
      if (caller.kind === "project")
        return rateLimitHeaders([
          await token.count(caller.tokenId, tokenLimit(caller)),
          await project.count(caller.projectId, part(caller.projectId, "project")),
        ]);
      if (caller.kind === "device")
        return rateLimitHeaders([await device.count(caller.deviceId, part(caller.projectId, "device"))]);
      if (caller.kind === "user")
        return rateLimitHeaders([
          await device.count(`${caller.projectId}/${caller.userId}`, part(caller.projectId, "device")),
        ]);
      // As for a project, where an operator's id is the token's: one limit for all that an operator does.
      if (caller.kind === "operator") return rateLimitHeaders([await token.count(caller.operator.id)]);
      return {};
    },
    /**
     * Counts `count` further requests of an authenticated caller, one for each notification of a batch. Throws rate-limited, without
     * counting any, if they do not all fit.
     */
    countBatch: async (caller: Caller, count: number) => {
      if (caller.kind !== "project" || count === 0) return {};
      const own = await token.countAll(caller.tokenId, count, tokenLimit(caller));
      try {
        const limit = part(caller.projectId, "project");
        return rateLimitHeaders([own, await project.countAll(caller.projectId, count, limit)]);
      } catch (error) {
        await token.refund(caller.tokenId, count);
        throw error;
      }
    },
    /** Counts a session or sign-in code of an operator, by its id or its identity's hash. Throws rate-limited after too many. */
    countSignIn: async (operator: string) => void (await signIns.count(operator)),
    /** Counts another upload of a file of which lines are stored. Throws rate-limited after too many. */
    countUpload: async (of: ImportId | NotificationId) => void (await uploads.count(of)),
    /** Counts decompressed bytes of a project's imports. Resolves to how long the upload must wait for the next ones, in ms. */
    countImported: (projectId: ProjectId, bytes: number): Promise<number> => imported.delay(projectId, bytes),
    /** The project's use of its limits in the current windows. */
    usedBy: async (projectId: ProjectId) => {
      const [requests, sent, dry] = await Promise.all([
        project.used(projectId, part(projectId, "project")),
        sends.used(projectId, part(projectId, "sends")),
        dryRuns.used(projectId, part(projectId, "dry-runs")),
      ]);
      return { requests, sends: sent, dryRuns: dry };
    },
    /** Counts a dry run. Throws quota-exceeded after too many of the project. */
    countDryRun: async (projectId: ProjectId) => void (await dryRuns.count(projectId, part(projectId, "dry-runs"))),
    /** Counts as many of `count` notifications as the project may still send. */
    reserveSends: (projectId: ProjectId, count: number) => sends.takeSome(projectId, count, part(projectId, "sends")),
  };
};

/** A limit per window of `seconds`. Clients see its name. */
export type Policy = { readonly name: string; readonly limit: number; readonly seconds: number };

/** A caller's remaining requests under a policy, and the seconds until its window ends. */
export type LimitState = { readonly policy: Policy; readonly remaining: number; readonly resetSeconds: number };

/** `RateLimit-Policy` and `RateLimit` as in draft-ietf-httpapi-ratelimit-headers: two lists in the same order. */
export const rateLimitHeaders = (states: readonly LimitState[]): Readonly<Record<string, string>> => ({
  "ratelimit-policy": states
    .map(({ policy: { name, limit, seconds } }) => `"${name}";q=${limit};w=${seconds}`)
    .join(", "),
  ratelimit: states
    .map(({ policy, remaining, resetSeconds }) => `"${policy.name}";r=${remaining};t=${resetSeconds}`)
    .join(", "),
});
