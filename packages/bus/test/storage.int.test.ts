import { type Bus, closeBus, connectBus, ensureStreams } from "@herald/bus";
import { type BusUserName, busUsers } from "@herald/bus/permissions";
import { createLogger } from "@herald/kit";
import { type JetStreamManager, jetstreamManager } from "@nats-io/jetstream";
import { expect, inject, onTestFinished, test } from "vitest";
import { declaredBytes } from "../src/stream-sizes.ts";
import { composeBroker, userNames } from "./compose-broker.ts";

/** The disk of the broker that infra/nats.conf describes, and the streams' shares of it. */

const gibibyte = 2 ** 30;
const log = createLogger({ service: "storage-test", level: "silent" });
const passwords = Object.fromEntries(userNames.map((name) => [name, `${name}-12e4`])) as Record<BusUserName, string>;

const bootstrap = (bus: Bus, gib: number) =>
  ensureStreams(bus, { replicas: 1, sizeFactor: (gib * gibibyte) / declaredBytes });

const prepare = async () => {
  const source = inject("heraldBrokerSource");
  if (source.kind !== "binary") return undefined;
  const broker = await composeBroker(source.path, passwords);
  const connected = async (): Promise<{ bus: Bus; jsm: JetStreamManager; close: () => Promise<void> }> => {
    const { user } = busUsers.bootstrap;
    const { inboxPrefix } = busUsers.bootstrap;
    const url = `nats://${broker.servers}`;
    const bus = await connectBus({ url, name: "bootstrap", user, password: passwords.bootstrap, inboxPrefix, log });
    const admin = await broker.logIn("admin");
    const close = async () => {
      await closeBus(bus);
      await admin.close();
    };
    onTestFinished(close);
    return { bus, jsm: await jetstreamManager(admin), close };
  };
  return { broker, connected };
};

const sizes = async (jsm: JetStreamManager) => {
  const all = new Map<string, number>();
  for await (const { config } of jsm.streams.list()) all.set(config.name, config.max_bytes);
  return { all, sum: [...all.values()].reduce((sum, size) => sum + size, 0) };
};

test.for([8, 2])("all streams fit into the %s GiB that the broker may use", async (gib, { skip }) => {
  const prepared = await prepare();
  if (!prepared) return skip("the broker is not a process of ours");
  await prepared.broker.start(`${gib}GiB`);
  const { bus, jsm } = await prepared.connected();
  expect((await bootstrap(bus, gib)).problems).toEqual([]);
  const { all, sum } = await sizes(jsm);
  expect(sum).toBeLessThanOrEqual(gib * gibibyte);
  expect(sum).toBeGreaterThan(gib * gibibyte - all.size);
  // There is nothing left for one more.
  const more: Parameters<typeof jsm.streams.add>[0] = {
    name: "MORE",
    subjects: ["more"],
    storage: "file",
    max_bytes: 1_000,
  };
  await expect(jsm.streams.add(more)).rejects.toThrow("insufficient storage");
});

test("a broker with less room is named with both numbers, and what it has then fits", async ({ skip }) => {
  const prepared = await prepare();
  if (!prepared) return skip("the broker is not a process of ours");
  await prepared.broker.start("2GiB");
  const { bus, jsm } = await prepared.connected();
  const refused = await bootstrap(bus, 8).catch((error: Error) => error.message);
  expect(refused).toMatch(
    /^the streams need 8GiB of the broker's disk together, as HERALD_NATS_STORAGE says, and it has room for (1\.\d|2)GiB and little more: it refused PUSH_\w+(, \w+)*\. Set HERALD_NATS_STORAGE=\d+MiB, or set `max_file_store` of its configuration to 8GiB or more; without that setting, it is three quarters of the free disk$/,
  );
  const [, offered] = /HERALD_NATS_STORAGE=(\d+)MiB/.exec(String(refused)) ?? [];
  expect((await bootstrap(bus, Number(offered) / 1024)).problems).toEqual([]);
  expect((await sizes(jsm)).sum).toBeLessThanOrEqual(2 * gibibyte);
  // The same when existing streams grow.
  await expect(bootstrap(bus, 3)).rejects.toThrow("the streams need 3GiB of the broker's disk together");
});

test("another setting resizes the streams, and no message is lost", async ({ skip }) => {
  const prepared = await prepare();
  if (!prepared) return skip("the broker is not a process of ours");
  const { broker, connected } = prepared;
  await broker.start("1GiB");
  const before = await connected();
  await bootstrap(before.bus, 1);
  // More than their shares of 64 MiB: a log and a bucket would lose their oldest, a queue keeps them.
  const body = "x".repeat(900_000);
  const publish = async (subject: string, count: number) => {
    const nats = await broker.logIn("admin");
    for (let index = 0; index < count; index += 1) await nats.request(`${subject}${index}`, body);
    await nats.close();
  };
  await publish("push.evt.v1.project.", 30);
  await publish("push.cmd.v1.", 20);
  await publish("$KV.push_idempotency.", 5);
  const held = ["PUSH_EVENTS", "PUSH_CMD", "KV_push_idempotency"];
  const counts = async (jsm: JetStreamManager) =>
    Promise.all(held.map(async (name) => (await jsm.streams.info(name)).state.messages));
  expect(await counts(before.jsm)).toEqual([30, 20, 5]);
  await before.close();

  // Compose restarts the broker with its new limit, and then runs the bootstrap step.
  await broker.start("64MiB");
  const { bus, jsm } = await connected();
  const { problems } = await bootstrap(bus, 1 / 16);
  expect(problems).toEqual([
    expect.stringMatching(
      /^PUSH_CMD: holds 17MiB and keeps its size, because its share of HERALD_NATS_STORAGE=64MiB is 10MiB: set HERALD_NATS_STORAGE=110MiB or more, or run this again when it holds less$/,
    ),
    expect.stringMatching(/^PUSH_EVENTS: holds 26MiB .* set HERALD_NATS_STORAGE=8\dMiB or more/),
    expect.stringMatching(/^KV_push_idempotency: holds 4MiB .* set HERALD_NATS_STORAGE=\d+MiB or more/),
  ]);
  expect(await counts(jsm)).toEqual([30, 20, 5]);
  const { all } = await sizes(jsm);
  expect(all.get("PUSH_OPENS")).toBe(Math.floor((gibibyte * gibibyte) / 16 / declaredBytes));

  await jsm.streams.purge("PUSH_CMD");
  const needed = problems.flatMap((problem) => /=(\d+)MiB or more/.exec(problem)?.[1] ?? []).map(Number);
  const { problems: left } = await bootstrap(bus, Math.max(...needed) / 1024);
  expect(left).toEqual([]);
  expect(await counts(jsm)).toEqual([30, 0, 5]);
});
