import {
  closeBus,
  connectBus,
  defineHandler,
  getDeadLetter,
  listDeadLetters,
  publish,
  publishEvent,
  replayDeadLetter,
} from "@herald/bus";
import { DeliverBatchV1, type DurableName, newDeviceId, ProjectDeletedV1, SendV1 } from "@herald/contracts";
import { HeraldError } from "@herald/kit";
import { eventually, faultyProxy } from "@herald/testing";
import { jetstream } from "@nats-io/jetstream";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { brokenSend, writeLetter } from "./dead-letter-fixture.ts";
import { type BusTest, headersOf, messagesIn, newProject, readStream, sendOf, startBusTest } from "./fixture.ts";
import { onSend } from "./send-fixture.ts";

let t: BusTest;
beforeAll(async () => {
  t = await startBusTest();
});
afterEach(() => t.reset());
afterAll(() => t.stop());

let attempts = 0;
const replay = (id: string, attempt = `attempt-${++attempts}`) => replayDeadLetter(t.bus, id, { attempt });

const letters = async (durable?: DurableName) =>
  (await listDeadLetters(t.bus, { by: "key", after: "", perPage: 100, durable })).data;
const lettersBecome = (count: number) =>
  eventually(async () => {
    const found = await letters();
    expect(found).toHaveLength(count);
    return found;
  });
const settled = () => eventually(async () => expect(await messagesIn(t, "PUSH_CMD")).toBe(0));

/** A send that a broken version has dead-lettered. The next version uses the real contract. */
const deadSend = async () => {
  const consuming = await t.handle(onSend(async () => {}, brokenSend));
  const data = sendOf();
  await publish(t.bus, SendV1, data, { id: data.notificationId });
  const [letter] = await lettersBecome(1);
  await settled();
  await consuming.stop(2_000);
  return { data, id: letter?.id ?? "" };
};

describe("a replay", () => {
  test("is handled by the current consumer under the same id, and recorded", async () => {
    const { data, id } = await deadSend();
    const seen: unknown[] = [];
    await t.handle(
      onSend(async (delivery) => {
        seen.push({ data: delivery.data, id: delivery.id, subject: delivery.subject, count: delivery.deliveryCount });
      }),
    );
    const { letter, understood } = await replay(id);
    expect(understood).toBe(true);
    expect(letter).toMatchObject({ id, replays: 1, replayed_at: expect.any(String) });
    await settled();
    expect(seen).toEqual([{ data, id: data.notificationId, subject: SendV1.subject(data), count: 1 }]);
    expect(await letters()).toEqual([letter]);
    expect(await getDeadLetter(t.bus, id)).toEqual(letter);
  });

  test("may be repeated and counts each attempt once", async () => {
    const { data, id } = await deadSend();
    const seen: string[] = [];
    await t.handle(onSend(async (delivery) => void seen.push(delivery.id)));
    await replay(id, "first");
    expect((await replay(id, "second")).letter.replays).toBe(2);
    expect((await replay(id, "second")).letter.replays).toBe(2);
    await settled();
    expect(seen).toEqual([data.notificationId, data.notificationId]);
    expect(await getDeadLetter(t.bus, id)).toMatchObject({ replays: 2 });
  });

  test("counts each of several concurrent attempts", async () => {
    const { id } = await deadSend();
    await Promise.all([replay(id), replay(id), replay(id)]);
    expect(await getDeadLetter(t.bus, id)).toMatchObject({ replays: 3 });
  });

  test("that fails again becomes another dead letter, which names the first", async () => {
    const { data, id } = await deadSend();
    await t.handle(onSend(async () => {}, brokenSend));
    await replay(id);
    const [first, second] = await lettersBecome(2);
    expect(first).toMatchObject({ id, replays: 1 });
    expect(second).toMatchObject({ replay_of: id, reason: "schema", subject: SendV1.subject(data) });
    expect(second).not.toHaveProperty("replays");
    // The second dead letter can be replayed as well, because it has lost nothing.
    await replay(second?.id ?? "");
    const third = (await lettersBecome(3))[2];
    expect(third).toMatchObject({ replay_of: second?.id, notification_id: data.notificationId });
    const bodies = (await readStream(t, "PUSH_DLQ")).map((message) => message.string());
    expect(new Set(bodies)).toEqual(new Set([JSON.stringify(data)]));
  });

  test("publishes a message that this version does not understand, and says so", async () => {
    const data = sendOf();
    const subject = SendV1.subject(data);
    const body = new Uint8Array([0xff, 0x00, 0x7b]);
    const id = await writeLetter(t, "dispatch-start", { "Herald-Dead-Subject": subject }, body);
    expect((await replay(id)).understood).toBe(false);
    const [published] = await readStream(t, "PUSH_CMD");
    expect([...(published?.data ?? [])]).toEqual([...body]);
  });

  test("of an event keeps its CloudEvent headers, under a new id of the message", async () => {
    const projectId = newProject();
    const durable = "dispatch-delete-project";
    let broken = true;
    const seen: string[] = [];
    await t.handle(
      defineHandler({
        durable,
        message: ProjectDeletedV1,
        async handle({ id }) {
          if (broken) throw new HeraldError("project-not-found", "not yet");
          seen.push(id);
        },
      }),
    );
    const at = new Date();
    const event = { project_id: projectId, at: at.toISOString() };
    await publishEvent(t.bus, { id: "fact-1", event: "ProjectDeletedV1", subject: projectId, at, data: event });
    const [letter] = await lettersBecome(1);
    expect(letter).toMatchObject({ durable, message: "ProjectDeletedV1", project_id: projectId });
    broken = false;
    await replay(letter?.id ?? "");
    await eventually(() => expect(seen).toEqual(["fact-1"]));
    const [original, again] = (await readStream(t, "PUSH_EVENTS")).map(headersOf);
    const ce = (all: typeof original) => Object.entries(all ?? {}).filter(([name]) => /^(ce-|content)/.test(name));
    expect(ce(again)).toEqual(ce(original));
    expect(ce(original)).toHaveLength(7);
    expect(again?.["Nats-Msg-Id"]).not.toEqual(original?.["Nats-Msg-Id"]);
    expect(Object.keys(again ?? {}).filter((name) => /^Herald-(Dead|Original)/.test(name))).toEqual([]);
  });

  test("that is refused publishes and records nothing", async () => {
    const { data, id } = await deadSend();
    const asked: unknown[] = [];
    const refused = replayDeadLetter(t.bus, id, {
      attempt: "refused",
      allow: async ({ letter, message, data: content }) => {
        asked.push([letter.id, message, content]);
        throw new HeraldError("replay-refused", "it would change nothing");
      },
    });
    await expect(refused).rejects.toMatchObject({ code: "replay-refused" });
    expect(asked).toEqual([[id, "SendV1", data]]);
    expect(await messagesIn(t, "PUSH_CMD")).toBe(0);
    expect(await getDeadLetter(t.bus, id)).not.toHaveProperty("replays");
  });
});

describe("a replay is refused for", () => {
  test.each([
    "",
    "$KV.push_tokens.stolen",
    "$JS.API.STREAM.PURGE.PUSH_CMD",
    "push.dlq.v1.dispatch-start",
    "push.cmd.v1.dispatch.send.p.n.more",
    "push.cmd.v1.dispatch.send.p.*",
    "push.cmd.v1.>",
    "push.req.v1.registry.devices.get",
  ])("a dead letter of %j", async (subject) => {
    const id = await writeLetter(t, "dispatch-start", { "Herald-Dead-Subject": subject });
    const heard: string[] = [];
    const all = t.raw.nc.subscribe(">", {
      callback: (_, msg) => {
        if (msg.headers?.has("Herald-Replay-Of")) heard.push(msg.subject);
      },
    });
    await expect(replay(id)).rejects.toMatchObject({ code: "replay-refused" });
    await t.raw.nc.flush();
    all.unsubscribe();
    expect(heard).toEqual([]);
  });

  test("a body that was too large to be kept", async () => {
    await t.handle(onSend(async () => {}));
    await jetstream(t.raw.nc).publish(SendV1.subject(sendOf()), new Uint8Array(t.raw.nc.info?.max_payload ?? 0));
    const [letter] = await lettersBecome(1);
    await expect(replay(letter?.id ?? "")).rejects.toThrow("too large to be kept");
    expect(await messagesIn(t, "PUSH_CMD")).toBe(0);
  });

  test("a dead letter that does not exist", async () => {
    await expect(replay("999999999")).rejects.toMatchObject({ code: "dead-letter-not-found" });
  });
});

describe("when a replay fails", () => {
  test("a full queue is reported, and the replay can be repeated", async () => {
    const projectId = newProject();
    const { notificationId } = sendOf(projectId);
    const batch = (n: number): DeliverBatchV1 => ({
      batchId: `${notificationId}/0/${n}`,
      projectId,
      notificationId,
      lane: "direct",
      platform: "ios",
      devices: [{ id: newDeviceId(new Date()), token: "t", tokenAt: 0 }],
    });
    const subject = DeliverBatchV1.subject(batch(0));
    const facts = { "Herald-Dead-Subject": subject };
    const id = await writeLetter(t, "dispatch-direct-ios", facts, JSON.stringify(batch(99)));
    for (let n = 0; n < 8; n++) await publish(t.bus, DeliverBatchV1, batch(n), { id: String(n) });
    await expect(replay(id)).rejects.toMatchObject({ code: "queue-full" });
    expect(await getDeadLetter(t.bus, id)).not.toHaveProperty("replays");
    await t.raw.jsm.streams.purge("PUSH_DELIVER");
    expect((await replay(id)).letter.replays).toBe(1);
  });

  test("an attempt that could not be recorded publishes once when it is repeated", async () => {
    const { id } = await deadSend();
    const { config } = await t.raw.jsm.streams.info("KV_push_replays");
    await t.raw.jsm.streams.update("KV_push_replays", { ...config, subjects: ["$KV.elsewhere.>"] });
    try {
      await expect(replay(id, "same")).rejects.toMatchObject({ code: "bus-unavailable" });
    } finally {
      await t.raw.jsm.streams.update("KV_push_replays", config);
    }
    expect(await getDeadLetter(t.bus, id)).not.toHaveProperty("replays");
    expect((await replay(id, "same")).letter.replays).toBe(1);
    expect(await messagesIn(t, "PUSH_CMD")).toBe(1);
  });

  test.each(["not JSON", '{"times":"many"}', "\xff"])(
    "is counted from zero where %j is kept of it",
    async (garbage) => {
      const { id } = await deadSend();
      await jetstream(t.raw.nc).publish(`$KV.push_replays.${id}`, garbage);
      const [shown] = await letters();
      expect(shown).toMatchObject({ id });
      expect(shown).not.toHaveProperty("replays");
      expect((await replay(id)).letter.replays).toBe(1);
      expect(await getDeadLetter(t.bus, id)).toMatchObject({ replays: 1 });
    },
  );

  test("an unavailable broker is an error, not a replay", async () => {
    const { id } = await deadSend();
    const proxy = await faultyProxy(t.broker.url);
    const bus = await connectBus({ url: proxy.url, name: "cut-off", log: t.log });
    await proxy.cut();
    await expect(replayDeadLetter(bus, id, { attempt: "cut" })).rejects.toMatchObject({ code: "bus-unavailable" });
    await proxy.heal();
    await eventually(async () => {
      const { letter } = await replayDeadLetter(bus, id, { attempt: "cut" });
      expect(letter.replays).toBe(1);
    });
    expect(await messagesIn(t, "PUSH_CMD")).toBe(1);
    await closeBus(bus);
    await proxy.stop();
  });

  test("records of an old stream do not apply to a recreated one", async () => {
    const { config } = await t.raw.jsm.streams.info("PUSH_DLQ");
    const facts = { "Herald-Dead-Subject": SendV1.subject(sendOf()) };
    // A broker that has just deleted a stream may fail on its old files when it recreates the stream.
    const recreate = () =>
      eventually(async () => {
        await t.raw.jsm.streams.delete("PUSH_DLQ").catch(() => {});
        await t.raw.jsm.streams.add(config);
        expect(await writeLetter(t, "dispatch-start", facts)).toBe("1");
      });
    await recreate();
    expect((await replay("1")).letter.replays).toBe(1);
    await recreate();
    expect(await getDeadLetter(t.bus, "1")).not.toHaveProperty("replays");
    expect((await replay("1")).letter.replays).toBe(1);
  });
});
