import { type Bucket, closeBus, connectBus, openBucket } from "@herald/bus";
import {
  IdempotencyRecord,
  newTokenId,
  ProjectRecord,
  projectRulesKey,
  projectSettingsKey,
  RulesRecord,
  TokenRecord,
} from "@herald/contracts";
import { withRequestId } from "@herald/kit";
import { eventually, faultyProxy } from "@herald/testing";
import { Kvm } from "@nats-io/kv";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { type BusTest, newProject, startBusTest } from "./fixture.ts";

let t: BusTest;
let tokens: Bucket<TokenRecord>;
let keys: Bucket<IdempotencyRecord>;
beforeAll(async () => {
  t = await startBusTest();
  tokens = openBucket(t.bus, "push_tokens", TokenRecord);
  keys = openBucket(t.bus, "push_idempotency", IdempotencyRecord);
});
afterEach(() => t.reset());
afterAll(() => t.stop());

const token = (): TokenRecord => ({ id: newTokenId(new Date()), projectId: newProject(), scopes: ["send"] });
const started = (): IdempotencyRecord => ({ body: "hash", id: "ntf_1", at: Date.now() });

describe("a bucket", () => {
  test("returns what was put, with its revision", async () => {
    const value = token();
    expect(await tokens.get("a")).toBeUndefined();
    const revision = await tokens.put("a", value);
    expect(await tokens.get("a")).toEqual({ key: "a", value, revision, at: expect.any(Date) });
    await tokens.delete("a");
    expect(await tokens.get("a")).toBeUndefined();
  });

  test("creates a key once, and again after a deletion", async () => {
    expect(await keys.create("k", started())).toBe(true);
    expect(await keys.create("k", started())).toBe(false);
    await keys.delete("k");
    expect(await keys.create("k", started())).toBe(true);
    expect(await keys.create("k", started())).toBe(false);
  });

  test("lets one of many concurrent creates win", async () => {
    const won = await Promise.all(Array.from({ length: 20 }, () => keys.create("race", started())));
    expect(won.filter(Boolean)).toHaveLength(1);
  });

  test.each([1, 7, 60])("creates %i together, and one that is taken leaves the others alone", async (count) => {
    const entries = Array.from({ length: count }, (_, index) => ({ key: `many-${index}`, value: started() }));
    expect(await keys.writeAll({ create: entries })).toEqual(entries.map(() => true));
    for (const { key, value } of entries) expect((await keys.get(key))?.value).toEqual(value);
    const more = entries.map(({ key }, index) => ({ key: index === 0 ? key : `new-${key}`, value: started() }));
    expect(await keys.writeAll({ create: more })).toEqual(more.map((_, index) => index > 0));
    expect((await keys.get("many-0"))?.value).toEqual(entries[0]?.value);
    await keys.delete("many-0");
    expect(await keys.writeAll({ create: entries.slice(0, 1) })).toEqual([true]);
    const put = entries.map(({ key }) => ({ key, value: { ...started(), released: true } }));
    expect(await keys.writeAll({ put })).toEqual([]);
    for (const { key } of entries) expect((await keys.get(key))?.value.released).toBe(true);
  });

  test("leaves a marker that expires where it deletes an entry, if its bucket has markers", async () => {
    await keys.put("deleted", started());
    await keys.delete("deleted");
    const marker = await t.raw.jsm.streams.getMessage("KV_push_idempotency", {
      last_by_subj: "$KV.push_idempotency.deleted",
    });
    expect([marker?.header.get("KV-Operation"), marker?.header.get("Nats-TTL")]).toEqual(["DEL", "60s"]);
  });

  test("creates together where some keys were deleted, and each with its own TTL", async () => {
    const entries = Array.from({ length: 40 }, (_, index) => ({
      key: `ttl-${index}`,
      value: started(),
      ...(index % 2 === 0 ? { ttlMs: 1_000 } : {}),
    }));
    await keys.put("ttl-3", started());
    await keys.delete("ttl-3");
    expect(await keys.writeAll({ create: entries })).toEqual(entries.map(() => true));
    const again = entries.map((entry) => ({ ...entry, key: `again-${entry.key}` }));
    expect(await keys.writeAll({ create: again })).toEqual(again.map(() => true));
    for (const [brief, lasting] of [
      ["ttl-0", "ttl-1"],
      ["again-ttl-38", "again-ttl-39"],
    ] as const) {
      await eventually(async () => expect(await keys.get(brief)).toBeUndefined());
      expect(await keys.get(lasting)).toBeDefined();
    }
  });

  test.each([
    [5, 5],
    [40, 40],
    [3, 60],
  ])("creates %i and puts %i together, also where one is taken", async (fresh, known) => {
    const entries = (count: number, name: string) =>
      Array.from({ length: count }, (_, index) => ({ key: `${name}-${index}`, value: started() }));
    const put = entries(known, "known");
    expect(await keys.writeAll({ create: entries(fresh, "fresh"), put })).toEqual(Array(fresh).fill(true));
    for (const { key, value } of put) expect((await keys.get(key))?.value).toEqual(value);
    const again = put.map(({ key }) => ({ key, value: started() }));
    const create = [...entries(1, "fresh"), ...entries(fresh - 1, "fresher")];
    expect(await keys.writeAll({ create, put: again })).toEqual(create.map((_, index) => index > 0));
    for (const { key, value } of again) expect((await keys.get(key))?.value).toEqual(value);
  });

  test("lets one of many concurrent batches win each key", async () => {
    const mine = () => Array.from({ length: 50 }, (_, index) => ({ key: `both-${index}`, value: started() }));
    const won = await Promise.all(
      [mine(), mine(), mine().toReversed()].map((entries) => keys.writeAll({ create: entries })),
    );
    const [one = [], two = [], three = []] = won;
    for (let index = 0; index < 50; index++)
      expect([one[index], two[index], three[49 - index]].filter(Boolean), String(index)).toHaveLength(1);
  });

  test("updates only the last revision", async () => {
    const revision = await tokens.put("a", token());
    const newer = token();
    expect(await tokens.update("a", newer, revision)).toBe(true);
    expect(await tokens.update("a", token(), revision)).toBe(false);
    expect((await tokens.get("a"))?.value).toEqual(newer);
  });

  test("removes an entry after its TTL, and the key can be created again", async () => {
    expect(await keys.create("brief", started(), { ttlMs: 1_000 })).toBe(true);
    // The broker's marker says that the entry was there.
    const last = { last_by_subj: "$KV.push_idempotency.brief" };
    await eventually(async () => {
      const marker = await t.raw.jsm.streams.getMessage("KV_push_idempotency", last);
      expect(marker?.header.get("Nats-Marker-Reason")).toBe("MaxAge");
    });
    expect(await keys.get("brief")).toBeUndefined();
    expect(await keys.create("brief", started(), { ttlMs: 1_000 })).toBe(true);
  });

  test("a TTL needs the bucket's marker setting: elsewhere it is refused, here and by the broker", async () => {
    await expect(tokens.put("a", token(), { ttlMs: 1_000 })).rejects.toThrow(TypeError);
    const raw = await new Kvm(t.raw.nc).open("push_tokens");
    await expect(raw.create("brief", "{}", "1s")).rejects.toMatchObject({ code: 10166 });
  });

  test("refuses keys that would be another subject, and values that are not of its schema", async () => {
    for (const key of ["", ".", "a.", "a b", "*", ">", "a.*", "a\r\nb"]) {
      await expect(async () => tokens.put(key, token())).rejects.toThrow(TypeError);
    }
    await expect(tokens.put("a", { ...token(), scopes: ["all"] as never })).rejects.toMatchObject({ name: "ZodError" });
  });

  test("of idempotency keys removes its oldest entry when full, others refuse new ones", async () => {
    const full = async (bucket: string, fill: (key: string) => Promise<unknown>) => {
      const { config } = await t.raw.jsm.streams.info(bucket);
      await t.raw.jsm.streams.update(bucket, { ...config, max_bytes: 4_000 });
      try {
        for (let index = 0; index < 50; index++) await fill(`key-${index}`);
      } finally {
        await t.raw.jsm.streams.update(bucket, config);
      }
    };
    await full("KV_push_idempotency", async (key) => expect(await keys.create(key, started())).toBe(true));
    expect(await keys.get("key-0")).toBeUndefined();
    expect(await keys.get("key-49")).toBeDefined();
    await expect(full("KV_push_tokens", (key) => tokens.put(key, token()))).rejects.toMatchObject({
      code: "queue-full",
    });
    expect(await tokens.get("key-0")).toBeDefined();
  });

  test("stores no request id and no trace with an entry", async () => {
    await withRequestId("request-1", () => tokens.put("a", token()));
    const stored = await t.raw.jsm.direct.getMessage("KV_push_tokens", { last_by_subj: "$KV.push_tokens.a" });
    expect(stored?.json()).toBeDefined();
    expect(stored?.header?.keys().filter((name) => !name.startsWith("Nats-")) ?? []).toEqual([]);
  });

  test("is a bucket for every NATS tool", async () => {
    const value = token();
    await tokens.put("tool", value);
    const raw = await new Kvm(t.raw.nc).open("push_tokens", { allow_direct: true });
    expect((await raw.get("tool"))?.json()).toEqual(value);
    await raw.put("other", JSON.stringify(value));
    expect((await tokens.get("other"))?.value).toEqual(value);
    await raw.purge("other");
    expect(await tokens.get("other")).toBeUndefined();
  });
});

describe("watch", () => {
  const follow = <Value>(bucket: Bucket<Value>, only?: string) => {
    const state = new Map<string, Value>();
    let ready = 0;
    const watching = bucket.watch(
      ({ key, value }) => {
        if (value === undefined) state.delete(key);
        else state.set(key, value);
      },
      () => {
        ready++;
      },
      only === undefined ? {} : { keys: only },
    );
    return { state, watching, ready: () => ready };
  };

  test("reports all entries, then ready, then every change", async () => {
    const [a, b, c] = [token(), token(), token()];
    await tokens.put("a", a);
    await tokens.put("b", token());
    await tokens.put("b", b);
    await tokens.put("gone", token());
    await tokens.delete("gone");
    const watch = follow(tokens);
    await eventually(() => expect(watch.ready()).toBe(1));
    expect(watch.state).toEqual(new Map(Object.entries({ a, b })));
    await tokens.put("c", c);
    await tokens.delete("a");
    await eventually(() => expect(watch.state).toEqual(new Map(Object.entries({ b, c }))));
    await watch.watching.stop();
    expect(watch.ready()).toBe(1);
  });

  test("an empty bucket is ready too", async () => {
    const watch = follow(tokens);
    await eventually(() => expect(watch.ready()).toBe(1));
    expect(watch.watching.ready()).toBe(true);
    await watch.watching.stop();
  });

  test("two kinds of values share a bucket, each watched by its keys", async () => {
    const projectId = newProject();
    const settings = openBucket(t.bus, "push_projects", ProjectRecord);
    const rules = openBucket(t.bus, "push_projects", RulesRecord);
    const watch = { settings: follow(settings, "*.settings"), rules: follow(rules, "*.rules") };
    await settings.put(projectSettingsKey(projectId), { id: projectId, openRegistration: true });
    await rules.put(projectRulesKey(projectId), { projectId, kinds: [] });
    await eventually(() => {
      expect([...watch.settings.state.keys()]).toEqual([projectSettingsKey(projectId)]);
      expect([...watch.rules.state.keys()]).toEqual([projectRulesKey(projectId)]);
    });
    await Promise.all([watch.settings.watching.stop(), watch.rules.watching.stop()]);
  });

  test("skips and logs an entry that does not parse", async () => {
    const raw = await new Kvm(t.raw.nc).open("push_tokens");
    await raw.put("bad", "}");
    const value = token();
    await tokens.put("good", value);
    const watch = follow(tokens);
    await eventually(() => expect(watch.ready()).toBe(1));
    expect([...watch.state.keys()]).toEqual(["good"]);
    expect(t.logged.some(({ msg }) => msg === "skipped an invalid entry")).toBe(true);
    await watch.watching.stop();
  });

  test("continues after the broker was unavailable", async () => {
    const watch = follow(tokens);
    await eventually(() => expect(watch.watching.ready()).toBe(true));
    await t.broker.kill();
    await eventually(() => expect(watch.watching.ready()).toBe(false));
    await t.broker.restart();
    await eventually(() => tokens.put("new", token()));
    await eventually(() => expect([...watch.state.keys()]).toEqual(["new"]));
    expect(watch.watching.ready()).toBe(true);
    await watch.watching.stop();
    await eventually(() => t.raw.nc.rtt());
  });

  test("reports after a reconnect what changed or vanished meanwhile", async () => {
    const proxy = await faultyProxy(t.broker.url);
    const bus = await connectBus({ url: proxy.url, name: "behind-proxy", log: t.log });
    await tokens.put("stays", token());
    await tokens.put("deleted", token());
    await tokens.put("purged", token());
    const watch = follow(openBucket(bus, "push_tokens", TokenRecord));
    await eventually(() => expect(watch.state.size).toBe(3));
    await proxy.cut();
    await eventually(() => expect(watch.watching.ready()).toBe(false));
    await tokens.delete("deleted");
    await t.raw.jsm.streams.purge("KV_push_tokens", { filter: "$KV.push_tokens.purged" });
    await tokens.put("new", token());
    await proxy.heal();
    await eventually(() => expect([...watch.state.keys()].toSorted()).toEqual(["new", "stays"]));
    await watch.watching.stop();
    await closeBus(bus);
    await proxy.stop();
  });

  test("waits for a missing bucket, and starts again when one is recreated", async () => {
    await tokens.put("old", token());
    const watch = follow(tokens);
    await eventually(() => expect(watch.state.size).toBe(1));
    const { config } = await t.raw.jsm.streams.info("KV_push_tokens");
    // A broker that has just deleted a stream may fail on its old files when it recreates the stream.
    await eventually(async () => {
      await t.raw.jsm.streams.delete("KV_push_tokens").catch(() => {});
      await t.raw.jsm.streams.add(config);
      await tokens.put("new", token());
    });
    await eventually(() => expect([...watch.state.keys()]).toEqual(["new"]), { timeoutMs: 20_000 });
    await watch.watching.stop();
  });
});
