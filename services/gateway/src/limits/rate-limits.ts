import type { ProjectId } from "@herald/contracts";
import { HeraldError } from "@herald/kit";
import { RateLimiterMemory, RateLimiterRes } from "rate-limiter-flexible";
import type { Caller } from "../auth/caller.ts";
import { limitKey } from "./limit-key.ts";
import { type Policy, rateLimitFields, type State } from "./rate-limit-fields.ts";

/** Long enough to even out a burst, short enough that nobody waits long and that few addresses are held in memory. */
const windowSeconds = 10;
/** A quota is against loops that nobody notices, and by the hour one is noticed and mended. */
const quotaSeconds = 3_600;

/** Looking up unknown credentials reads from the bus; this many a second, for all addresses together, it does not notice. */
const lookUpsPerSecond = 200;

/** Requests that may be made; all but `sends` and `newDevices` in 10 seconds. */
export type Limits = {
  /** Refusals of one address. */
  readonly failures: number;
  /** Requests by client identity from one address. */
  readonly clients: number;
  /** With one project token. */
  readonly token: number;
  /** With all tokens of one project. */
  readonly project: number;
  /** With the credential of one device. */
  readonly device: number;
  /** Notifications of one project in an hour. */
  readonly sends: number;
  /** New devices by client identity from one address in an hour. */
  readonly newDevices: number;
};

/** Room for a new device of one address; whether the device is new shows only when it has registered. */
export type Room = {
  readonly granted: boolean;
  /** It was not new. */
  readonly giveBack: () => Promise<void>;
  /** What to answer where there is none. */
  readonly refusal: HeraldError;
};

export type RateLimits = {
  /** Counts a refusal of this address. Throws rate-limited instead of letting it go on. */
  readonly failure: (address: string) => Promise<void>;
  /** Throws rate-limited when this address was refused too often, without counting. */
  readonly barred: (address: string) => Promise<void>;
  /** Counts a request by client identity. Throws rate-limited when there were too many. */
  readonly client: (address: string) => Promise<void>;
  /** Takes room for a device that may be new. */
  readonly newDevice: (address: string) => Promise<Room>;
  /** Counts a look-up on the bus for something that memory does not know. Throws rate-limited when there were too many. */
  readonly lookUp: () => Promise<void>;
  /** Counts a request of a caller who is known. Gives the fields that say what is left to it; throws rate-limited when nothing is. */
  readonly request: (caller: Caller) => Promise<Readonly<Record<string, string>>>;
  /** Counts a notification. Throws quota-exceeded when the project has sent too many. */
  readonly send: (projectId: ProjectId) => Promise<void>;
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
    { retryAfterSeconds: state.resetSeconds, headers: rateLimitFields([state]) },
  );
};

const limiter = (policy: Policy, what = "requests", code: "rate-limited" | "quota-exceeded" = "rate-limited") => {
  const memory = new RateLimiterMemory({ points: policy.most, duration: policy.seconds });
  const take = async (key: string): Promise<Room> => {
    const taken = await memory.consume(key).catch((left: unknown) => {
      if (left instanceof RateLimiterRes) return left;
      throw left;
    });
    const granted = taken.consumedPoints <= policy.most;
    return {
      granted,
      giveBack: async () => {
        if (granted) await memory.reward(key);
      },
      refusal: limited(what, stateOf(policy, taken), code),
    };
  };
  return {
    take,
    count: async (key: string): Promise<State> => {
      try {
        return stateOf(policy, await memory.consume(key));
      } catch (left) {
        throw left instanceof RateLimiterRes ? limited(what, stateOf(policy, left), code) : left;
      }
    },
    check: async (key: string): Promise<void> => {
      const left = await memory.get(key);
      if (left !== null && left.consumedPoints > policy.most) throw limited(what, stateOf(policy, left), code);
    },
  };
};

/** Limits of this gateway alone, in memory: each replica allows as much again. */
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
  const newDevices = limiter(
    { name: "new-devices", most: limits.newDevices, seconds: quotaSeconds },
    "identifier: new devices from this address",
  );
  return {
    newDevice: (address) => newDevices.take(limitKey(address)),
    failure: async (address) => void (await refused.count(limitKey(address))),
    barred: (address) => refused.check(limitKey(address)),
    client: async (address) => void (await client.count(limitKey(address))),
    lookUp: async () => void (await lookUps.count("all")),
    request: async (caller) => {
      // The narrower one first: what it refuses is not taken from the other tokens of the project.
      if (caller.kind === "project")
        return rateLimitFields([await token.count(caller.tokenId), await project.count(caller.projectId)]);
      if (caller.kind === "device") return rateLimitFields([await device.count(caller.deviceId)]);
      return {};
    },
    send: async (projectId) => void (await sends.count(projectId)),
  };
};
