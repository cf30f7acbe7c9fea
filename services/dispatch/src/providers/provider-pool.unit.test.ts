import { createLogger, UnknownMasterKey } from "@herald/kit";
import { beforeEach, describe, expect, test } from "vitest";
import type { CredentialDocument } from "../stores/credential-store.ts";
import { type Channel, createProviderPool, type ProviderPool } from "./provider-pool.ts";

const projectId = "prj_06bq4ghm31tz5d2ns8y7k9w0ac";
const start = Date.parse("2030-01-01");

let time: number;
let stored: Partial<CredentialDocument> | null;
let opens: () => Promise<unknown>;
let blocked: { route: string; until: Date }[];
let changes: string[];
let paused: string[];
let closed: string[];
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
  pool = createProviderPool({
    credentials: {
      find: async () => (stored ? (stored as CredentialDocument) : null),
      open: () => opens(),
      prove: async () => {},
      block: async ({ route, until }) => void blocked.push({ route, until }),
      report: async () => {},
      pause: async (_, { reason }) => paused.push(reason) > 0,
    },
    connect: (_, version) => ({
      prepare: () => async () => ({ kind: "accepted" }),
      routeOf: () => "",
      isNamedByDevice: () => false,
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
    (await channel()).refuse();
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
      stored = { projectId, provider: "apns", version };
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
    expect(one.routes.blockedUntil("a")).toBe(until.getTime() + 10);
    expect(one.routes.acquire("a")).toBe(until.getTime() + 10);
    expect(one.routes.blockedUntil("b")).toBeUndefined();
    expect(one.routes.acquire("b")).toMatchObject({ admission: "free" });
    expect(one.routes.anyBlocked()).toBe(true);
    expect(blocked).toEqual([{ route: "a", until }]);
    time += 30_010;
    expect(one.routes.blockedUntil("a")).toBeUndefined();
    expect(one.routes.anyBlocked()).toBe(false);
  });

  test("applies a throttle that another process received", async () => {
    const until = new Date(time + 60_000);
    stored = { ...stored, throttles: [{ route: "a", until }] };
    expect((await channel()).routes.blockedUntil("a")).toBe(until.getTime());
    expect(blocked).toEqual([]);
  });

  test("counts the transitions of its breakers, also of those that end with it", async () => {
    const one = await channel();
    const fail = (route: string) => {
      const permit = one.routes.acquire(route);
      if (typeof permit !== "number") one.routes.onFailure(permit, "503");
    };
    for (let failures = 0; failures < 25; failures++) fail("");
    expect(changes).toEqual(["apns opened"]);
    time += 5_000;
    fail("");
    expect(changes).toEqual(["apns opened", "apns reopened"]);
    await pool.close();
    expect(changes).toEqual(["apns opened", "apns reopened", "apns closed"]);
  });

  test("that was refused sends no more", async () => {
    const one = await channel();
    one.refuse();
    expect(one.refused()).toBe(true);
  });
});
