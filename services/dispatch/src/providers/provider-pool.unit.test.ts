import { newDeviceId } from "@herald/contracts";
import { createLogger, UnknownMasterKey } from "@herald/kit";
import { beforeEach, describe, expect, test } from "vitest";
import type { Outcome } from "../domain/outcome.ts";
import type { CredentialDocument } from "../stores/credential-store.ts";
import { type Channel, createProviderPool, type ProviderPool } from "./provider-pool.ts";
import type { RoutePermit } from "./provider-routes.ts";

const projectId = "prj_06bq4ghm31tz5d2ns8y7k9w0ac";
const start = Date.parse("2030-01-01");
const device = newDeviceId(new Date(start));

let time: number;
let stored: Partial<CredentialDocument> | null;
let opens: () => Promise<unknown>;
let blocked: { route: string; until: Date }[];
let changes: string[];
let paused: string[];
let closed: string[];
let renewed: number[];
let claimTrial: (document: CredentialDocument) => Promise<Date | undefined>;
let pool: ProviderPool;

/** Runs all pending callbacks. */
const settle = () => new Promise((resolve) => setImmediate(resolve));

beforeEach(() => {
  time = start;
  stored = { projectId, provider: "apns", version: "v1" };
  opens = async () => stored?.version;
  blocked = [];
  changes = [];
  paused = [];
  closed = [];
  renewed = [];
  claimTrial = async () => undefined;
  pool = createProviderPool({
    credentials: {
      find: async () => (stored ? (stored as CredentialDocument) : null),
      open: () => opens(),
      prove: async () => {},
      block: async ({ route, until }) => void blocked.push({ route, until }),
      report: async () => {},
      pause: async (_, { reason }) => paused.push(reason) > 0,
      claimTrial: async (document) => claimTrial(document),
    },
    connect: (_, version) => ({
      prepare: () => async () => ({ kind: "accepted" }),
      routeOf: () => "",
      isNamedByDevice: () => false,
      renewToken: (since) => void renewed.push(since.getTime()),
      close: async () => void closed.push(String(version)),
    }),
    inFlight: 100,
    unproven: 50,
    clients: 2,
    metrics: { breaker: (provider, change) => void changes.push(`${provider} ${change}`), unreached: () => {} },
    now: () => new Date(time),
    log: createLogger({ service: "test", level: "silent" }),
  });
});

const channel = async (id = projectId): Promise<Channel> => {
  const lookup = await pool.lookup(id as typeof projectId, "apns");
  if (lookup.kind !== "ready") throw new Error(lookup.kind);
  return lookup.channel;
};

const accepted: Outcome = { kind: "accepted" };
const permit = (one: Channel): RoutePermit => {
  const acquired = one.routes.acquire("", device);
  if (typeof acquired === "number") throw new Error("the route is blocked");
  return acquired;
};
/** The provider refuses the credential of two pushes, five seconds apart. */
const refuseTwice = (one: Channel) => {
  one.onRefusal(permit(one), "InvalidProviderToken");
  time += 5_000;
  one.onRefusal(permit(one), "InvalidProviderToken");
};

describe("a look-up", () => {
  test("caches the stored state for a second", async () => {
    stored = null;
    expect(await pool.lookup(projectId, "apns")).toEqual({ kind: "not-configured" });
    stored = { projectId, provider: "apns", version: "v1" };
    time += 1_000;
    expect(await pool.lookup(projectId, "apns")).toEqual({ kind: "not-configured" });
    time += 1;
    expect((await channel()).version).toBe("v1");
    stored = { ...stored, paused: { at: new Date(), reason: "", providerReason: "" } };
    pool.forget(projectId, "apns");
    expect(await pool.lookup(projectId, "apns")).toEqual({ kind: "paused" });
  });

  test("of the same moment share a read, and one that was forgotten meanwhile is not kept", async () => {
    const both = [channel(), channel()];
    const read = stored;
    stored = null;
    pool.forget(projectId, "apns");
    const [one, other] = await Promise.all(both);
    expect([one?.version, other]).toEqual([read?.version, one]);
    expect(await pool.lookup(projectId, "apns")).toEqual({ kind: "not-configured" });
  });

  test("remembers the refused version before the database has it", async () => {
    const settings = { projectId, provider: "apns", version: "v1" } as const;
    expect(pool.refused(settings)).toBe(false);
    refuseTwice(await channel());
    expect(pool.refused(settings)).toBe(true);
    expect(pool.refused({ ...settings, version: "v2" })).toBe(false);
    expect(pool.refused({ ...settings, provider: "fcm" })).toBe(false);
  });

  test("gives a new version a new client, and closes the old one after its last answer", async () => {
    const old = await channel();
    await old.reserve(1);
    stored = { ...stored, version: "v2" };
    pool.forget(projectId, "apns");
    expect((await channel()).version).toBe("v2");
    await settle();
    expect(closed).toEqual([]);
    old.release(1);
    await settle();
    expect(closed).toEqual(["v1"]);
  });

  test("limits its clients, and closes the least recently used", async () => {
    for (const version of ["a", "b", "c"]) {
      stored = { projectId: `prj_${version}`, provider: "apns", version };
      await channel(`prj_${version}`);
      time += 10;
    }
    await settle();
    expect(closed).toEqual(["a"]);
    await pool.close();
    expect(closed.sort()).toEqual(["a", "b", "c"]);
  });
});

describe("settings that cannot be opened", () => {
  const failing = (error: Error) => {
    opens = async () => {
      throw error;
    };
    return pool.lookup(projectId, "apns");
  };

  test("because the master key is missing are retried: the operator must add the key", async () => {
    await expect(failing(new UnknownMasterKey("m9"))).rejects.toMatchObject({ code: "service-unavailable" });
    expect(paused).toEqual([]);
  });

  test("for any other reason pause the provider", async () => {
    expect(await failing(new Error("tampered with"))).toEqual({ kind: "paused" });
    expect(paused).toEqual(["settings-unusable"]);
  });
});

describe("a channel", () => {
  test("limits pushes with an unproven credential, and raises the limit once it is proven", async () => {
    const one = await channel();
    const entered: number[] = [];
    for (const turn of [1, 2, 3]) void one.reserve(50).then(() => entered.push(turn));
    await settle();
    expect(entered).toEqual([1]);
    one.prove("");
    await settle();
    expect(entered).toEqual([1, 2]);
    one.release(50);
    await settle();
    expect(entered).toEqual([1, 2, 3]);
  });

  test("stops sending to a server for as long as it asked, to no other, and shares that once", async () => {
    const one = await channel();
    const until = new Date(time + 30_000);
    one.throttle("a", until);
    one.throttle("a", new Date(until.getTime() + 10));
    one.throttle("a", new Date(time + 5));
    expect(one.routes.blockedUntil("a", device)).toBe(until.getTime() + 10);
    expect(one.routes.acquire("a", device)).toBe(until.getTime() + 10);
    expect(one.routes.blockedUntil("b", device)).toBeUndefined();
    expect(one.routes.acquire("b", device)).toMatchObject({ admittedAt: 0 });
    expect(one.routes.anyBlocked()).toBe(true);
    expect(blocked).toEqual([{ route: "a", until }]);
    time += 30_010;
    expect(one.routes.blockedUntil("a", device)).toBeUndefined();
    expect(one.routes.anyBlocked()).toBe(false);
  });

  test("applies a throttle that another process received", async () => {
    const until = new Date(time + 60_000);
    stored = { ...stored, throttles: [{ route: "a", until }] };
    expect((await channel()).routes.blockedUntil("a", device)).toBe(until.getTime());
    expect(blocked).toEqual([]);
  });

  test("counts the transitions of its breakers, also of those that end with it", async () => {
    const one = await channel();
    const fail = (route: string) => {
      const permit = one.routes.acquire(route, device);
      if (typeof permit !== "number") one.routes.onFailure(permit, "503");
    };
    for (let failures = 0; failures < 25; failures++) fail("");
    expect(changes).toEqual(["apns opened"]);
    time += 1_000;
    fail("");
    expect(changes).toEqual(["apns opened", "apns reopened"]);
    await pool.close();
    expect(changes).toEqual(["apns opened", "apns reopened", "apns closed"]);
  });

  test("that was refused twice sends no more, until its pause is stored", async () => {
    const one = await channel();
    refuseTwice(one);
    expect(one.refused()).toBe(true);
    one.pauseStored();
    expect(one.refused()).toBe(false);
  });
});

describe("a refused credential", () => {
  test("lets the other pushes wait for five seconds, and then one with a new token decides", async () => {
    const one = await channel();
    const first = permit(one);
    const late = permit(one);
    expect(one.onRefusal(first, "InvalidProviderToken")).toEqual({
      ...{ kind: "unconfirmed", until: new Date(start + 5_000), isAttempt: false },
    });
    // The answers to pushes that were in flight decide nothing.
    expect(one.onRefusal(late, "InvalidProviderToken")).toMatchObject({ kind: "unconfirmed" });
    expect([one.refused(), one.routes.anyBlocked(), one.routes.acquire("other", device)]).toEqual([
      false,
      true,
      start + 5_000,
    ]);
    expect(one.routes.failureOf("")).toBe("InvalidProviderToken");
    time += 5_000;
    const second = permit(one);
    expect(renewed).toEqual([start]);
    expect(one.isSecond(second)).toBe(true);
    expect(one.routes.acquire("", device)).toBe(time + 1_000);
    expect(one.onRefusal(second, "InvalidProviderToken")).toEqual({ kind: "confirmed", since: new Date(start) });
    expect(one.refused()).toBe(true);
  });

  test("is trusted when the second push is accepted, or refused for its device", async () => {
    const one = await channel();
    for (const outcome of [accepted, { kind: "unregistered", providerReason: "Unregistered" } as const]) {
      one.onRefusal(permit(one), "InvalidProviderToken");
      time += 5_000;
      one.onSecondAnswer(permit(one) && outcome);
      expect([one.refused(), one.routes.anyBlocked()]).toEqual([false, false]);
    }
    // What is refused again although others are accepted uses an attempt.
    expect(one.onRefusal(permit(one), "InvalidProviderToken")).toMatchObject({ kind: "unconfirmed", isAttempt: true });
  });

  test.each<Outcome | undefined>([
    { kind: "deferred", providerReason: "TooManyProviderTokenUpdates", limit: "sender" },
    { kind: "unknown", providerReason: "no answer" },
    { kind: "rejected", reason: "internal", providerReason: "", notSent: true },
    undefined,
  ])("stays in doubt for a minute when the second push says nothing about it: %j", async (outcome) => {
    const one = await channel();
    one.onRefusal(permit(one), "InvalidProviderToken");
    time += 5_000;
    for (let tries = 0; tries < 3; tries++) {
      expect(one.isSecond(permit(one))).toBe(true);
      one.onSecondAnswer(outcome);
    }
    expect(one.routes.anyBlocked()).toBe(true);
    time += 60_000;
    permit(one);
    one.onSecondAnswer(outcome);
    expect([one.refused(), one.routes.anyBlocked()]).toEqual([false, false]);
  });
});

describe("a trial of a paused provider", () => {
  const trialAt = new Date(start + 60_000);
  beforeEach(() => {
    stored = {
      ...{ projectId, provider: "apns", version: "v1" },
      paused: { at: new Date(start), reason: "credential-refused", providerReason: "x", nextTrialAt: trialAt },
    };
  });
  const waitOf = (owner: string, due = trialAt) => pool.trials.waitOf(projectId, "apns", due, owner);
  const take = (due = trialAt) => pool.trials.take(projectId, "apns", due);

  test("is not due before its time, and rows wait for it, at most five minutes", async () => {
    claimTrial = () => {
      throw new Error("it is not due");
    };
    expect(await pool.lookup(projectId, "apns")).toEqual({ kind: "paused", nextTrialAt: trialAt });
    expect(await take()).toBeUndefined();
    expect(await waitOf("row")).toBe(trialAt.getTime());
    expect(await waitOf("row", new Date(start + 900_000))).toBe(start + 300_000);
  });

  test("goes to the row that claimed it, and to the next push if that row sends none", async () => {
    time += 60_000;
    const nextAt = new Date(time + 120_000);
    let claims = 0;
    claimTrial = async () => (claims++ === 0 ? nextAt : undefined);
    expect(await waitOf("one")).toBeUndefined();
    expect([await waitOf("one"), await waitOf("other")]).toEqual([undefined, time + 1_000]);
    pool.trials.leave(projectId, "apns", "one");
    expect([await waitOf("other"), await waitOf("one")]).toEqual([undefined, time + 1_000]);
    const trial = await take();
    expect(trial).toMatchObject({ nextAt, channel: { version: "v1" } });
    expect(await take()).toBeUndefined();
    if (trial) pool.trials.giveBack(trial);
    expect(await take()).toMatchObject({ nextAt });
    // Of a process that died, another one has the next trial.
    time = nextAt.getTime();
    claims = 0;
    if (stored?.paused) stored.paused.nextTrialAt = nextAt;
    expect(await take(nextAt)).toBeDefined();
  });

  test("that another process claimed first is waited for again, unless it has ended the pause", async () => {
    time += 60_000;
    const nextTrialAt = new Date(time + 120_000);
    claimTrial = async () => {
      if (stored?.paused) stored = { ...stored, paused: { ...stored.paused, nextTrialAt } };
      return undefined;
    };
    expect(await waitOf("row")).toBe(nextTrialAt.getTime());
    expect(await take(nextTrialAt)).toBeUndefined();
    const { paused: _, ...active } = stored ?? {};
    stored = active;
    expect(await waitOf("row")).toBeUndefined();
  });
});
