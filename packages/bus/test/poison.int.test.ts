import { closeBus, consume, defineDeadLetterHandler, listDeadLetters, replayDeadLetter } from "@herald/bus";
import { SendV1 } from "@herald/contracts";
import { HeraldError } from "@herald/kit";
import { eventually } from "@herald/testing";
import { jetstream } from "@nats-io/jetstream";
import { headers } from "@nats-io/transport-node";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { type BusTest, headersOf, messagesIn, readStream, sendOf, startBusTest } from "./fixture.ts";
import { connectAs } from "./nats-login.ts";
import { durable, onSend, publishSend, sendsSettled, settledLine } from "./send-fixture.ts";

let t: BusTest;
beforeAll(async () => {
  t = await startBusTest();
});
afterEach(() => t.reset());
afterAll(() => t.stop());

const send = () => publishSend(t);
const allSettled = () => sendsSettled(t);
const line = () => settledLine(t);

describe("poison", () => {
  const bodies = [
    ["not JSON", new Uint8Array([0xff, 0x00, 0x7b]), "the body is not JSON"],
    ["an empty body", new Uint8Array(), "the body is not JSON"],
    ["JSON of something else", new TextEncoder().encode('{"hello":"secret words"}'), "projectId:"],
  ] as const;

  test.each(bodies)("%s is dead-lettered with its bytes and the reason", async (_, body, detail) => {
    let runs = 0;
    await t.handle(
      onSend(async () => {
        runs++;
      }),
    );
    const subject = SendV1.subject(sendOf());
    await jetstream(t.raw.nc).publish(subject, body, { msgID: subject });
    await allSettled();
    const [letter] = await readStream(t, "PUSH_DLQ");
    expect(runs).toBe(0);
    expect(letter?.subject).toBe(`push.dlq.v1.${durable}`);
    expect([...(letter?.data ?? [])]).toEqual([...body]);
    expect(headersOf(letter)).toMatchObject({
      "Herald-Dead-Subject": [subject],
      "Herald-Dead-Stream": ["PUSH_CMD"],
      "Herald-Dead-Reason": ["schema"],
      "Herald-Dead-Deliveries": ["1"],
      "Herald-Dead-Detail": [expect.stringContaining(detail)],
      "Herald-Original-Nats-Msg-Id": [subject],
    });
    expect(line()).toMatchObject({ level: "error", outcome: "dead_lettered", reason: "schema" });
    expect(JSON.stringify(t.logged)).not.toContain("secret words");
  });

  test("without body and headers does not cost later messages a delivery across accounts", async () => {
    const bus = await connectAs(t, "dispatch");
    const counts: number[] = [];
    const consuming = await consume(bus, [
      onSend(async ({ deliveryCount }) => {
        counts.push(deliveryCount);
      }),
    ]);
    await eventually(() => expect(consuming.ready()).toBe(true));
    for (let round = 1; round <= 3; round++) {
      await jetstream(t.raw.nc).publish(SendV1.subject(sendOf()), "");
      await eventually(async () => expect(await messagesIn(t, "PUSH_DLQ")).toBe(round));
      for (let count = 0; count < 5; count++) await send();
    }
    await allSettled();
    expect(counts).toEqual(Array.from({ length: 15 }, () => 1));
    await consuming.stop(2_000);
    await closeBus(bus);
  });

  test("between good messages", async () => {
    const seen: string[] = [];
    await t.handle(
      onSend(async ({ id }) => {
        seen.push(id);
      }),
    );
    const first = await send();
    await jetstream(t.raw.nc).publish(SendV1.subject(sendOf()), "}");
    const second = await send();
    await allSettled();
    expect(seen.toSorted()).toEqual([first.notificationId, second.notificationId].toSorted());
    expect(await messagesIn(t, "PUSH_DLQ")).toBe(1);
  });

  test("a body of the largest size is dead-lettered without the body", async () => {
    await t.handle(onSend(async () => {}));
    const subject = SendV1.subject(sendOf());
    const max = t.raw.nc.info?.max_payload ?? 0;
    await jetstream(t.raw.nc).publish(subject, new Uint8Array(max));
    await allSettled();
    const [letter] = await readStream(t, "PUSH_DLQ");
    expect(letter?.data).toHaveLength(0);
    expect(letter?.header.get("Herald-Dead-Detail")).toContain(`a body of ${max} bytes, left out`);
  });

  test("is not terminated while the dead letters refuse it", async () => {
    const { config } = await t.raw.jsm.streams.info("PUSH_DLQ");
    await t.raw.jsm.streams.update("PUSH_DLQ", { ...config, subjects: ["push.elsewhere.v1.>"] });
    try {
      await t.handle(onSend(async () => {}));
      await jetstream(t.raw.nc).publish(SendV1.subject(sendOf()), "}");
      await eventually(() => expect(line()).toMatchObject({ outcome: "retried" }));
      expect(await messagesIn(t, "PUSH_CMD")).toBe(1);
    } finally {
      await t.raw.jsm.streams.update("PUSH_DLQ", config);
    }
    await allSettled();
    expect(await messagesIn(t, "PUSH_DLQ")).toBe(1);
  });
});

describe("arbitrary messages", () => {
  const random = (size: number) => crypto.getRandomValues(new Uint8Array(size));
  const shapes = [
    () => random(Math.floor(Math.random() * 200)),
    () => new TextEncoder().encode(JSON.stringify({ ...sendOf(), projectId: ["__proto__"] })),
    () => new TextEncoder().encode("[".repeat(5_000)),
    () => new TextEncoder().encode('{"__proto__":{"polluted":true},"projectId":null}'),
    () =>
      new TextEncoder().encode(JSON.stringify({ ...sendOf(), content: { title: "x".repeat(10_000), targets: [1] } })),
  ];
  const oddHeaders = () => {
    const odd = headers();
    odd.set("traceparent", "00-zz-zz-99");
    odd.set("Herald-Request-Id", "x".repeat(10_000));
    odd.set("ce-id", "\u0000é☃");
    odd.set("Nats-Rollup", "");
    return odd;
  };

  test("are settled, and valid messages between them are handled", async () => {
    const seen: string[] = [];
    await t.handle(
      onSend(async ({ id }) => {
        seen.push(id);
      }),
    );
    const js = jetstream(t.raw.nc);
    const good: string[] = [];
    const rounds = process.env.HERALD_TEST_LONG ? 100 : 20;
    for (let n = 0; n < rounds; n++) {
      await Promise.all(
        shapes.map((make) => js.publish(SendV1.subject(sendOf()), make(), n % 2 ? { headers: oddHeaders() } : {})),
      );
      good.push((await send()).notificationId);
    }
    await allSettled();
    expect(seen.toSorted()).toEqual(good.toSorted());
    expect(await messagesIn(t, "PUSH_DLQ")).toBe(rounds * shapes.length);
    expect({}).not.toHaveProperty("polluted");
  });
});

describe("dead letters", () => {
  test("are handled with their origin, even when they are not JSON", async () => {
    const letters: unknown[] = [];
    await t.handle(
      onSend(async () => {
        throw new HeraldError("notification-not-found", "gone");
      }),
      defineDeadLetterHandler({
        durable: "dispatch-dead-letters",
        async handle({ data }) {
          letters.push(data);
        },
      }),
    );
    const data = await send();
    const subject = SendV1.subject(sendOf());
    await jetstream(t.raw.nc).publish(subject, "}");
    await eventually(() => expect(letters).toHaveLength(2));
    const message = { publishedAt: expect.any(Date), sequence: expect.any(Number) };
    expect(letters).toEqual(
      expect.arrayContaining([
        {
          durable,
          subject: SendV1.subject(data),
          reason: "notification-not-found",
          detail: "gone",
          body: data,
          message,
        },
        { durable, subject, reason: "schema", detail: "the body is not JSON", body: undefined, message },
      ]),
    );
  });

  test("that cannot be handled are dropped, not dead-lettered again", async () => {
    let runs = 0;
    await t.handle(
      onSend(async () => {
        throw new HeraldError("notification-not-found", "gone");
      }),
      defineDeadLetterHandler({
        durable: "dispatch-dead-letters",
        async handle() {
          runs++;
          throw new HeraldError("project-not-found", "gone too");
        },
      }),
    );
    await send();
    await eventually(async () => {
      const info = await t.raw.jsm.consumers.info("PUSH_DLQ", "dispatch-dead-letters");
      expect({ runs, acked: info.ack_floor.stream_seq > 0, unacked: info.num_ack_pending }).toEqual({
        runs: 1,
        acked: true,
        unacked: 0,
      });
    });
    expect(await messagesIn(t, "PUSH_DLQ")).toBe(1);
  });
});

test("handles every good one of 600 messages with 1 in 30 poison, lists the others with their reasons, and replays them", async () => {
  const lettersBecome = (count: number) =>
    eventually(async () => {
      const { data } = await listDeadLetters(t.bus, { by: "key", after: "", perPage: 100 });
      expect(data).toHaveLength(count);
      return data;
    });
  const kinds = ["schema", "not JSON", "never"] as const;
  let mended = false;
  const refused = new Set<string>();
  const handled = new Map<string, number>();
  const handle = onSend(async ({ data: { notificationId } }) => {
    if (refused.has(notificationId) && !mended)
      throw new HeraldError("project-not-found", "project: project not found");
    handled.set(notificationId, (handled.get(notificationId) ?? 0) + 1);
  });
  await t.handle(handle);
  const good: string[] = [];
  const poison: { id: string; kind: (typeof kinds)[number] }[] = [];
  const js = jetstream(t.raw.nc);
  const publishing: Promise<unknown>[] = [];
  for (let n = 0; n < 600; n++) {
    const data = sendOf();
    const id = data.notificationId;
    const kind = n % 30 === 17 ? kinds[Math.floor(n / 30) % kinds.length] : undefined;
    if (kind === undefined) good.push(id);
    else poison.push({ id, kind });
    if (kind === "never") refused.add(id);
    const text = JSON.stringify(data);
    const body = { schema: text.replace('"projectId"', '"project"'), "not JSON": text.slice(1) };
    publishing.push(js.publish(SendV1.subject(data), kind === "schema" || kind === "not JSON" ? body[kind] : text));
    if (publishing.length === 200) await Promise.all(publishing.splice(0));
  }
  await allSettled();
  expect(handled).toEqual(new Map(good.map((id) => [id, 1])));
  const reasons = { schema: "schema", "not JSON": "schema", never: "project-not-found" };
  const listed = await lettersBecome(20);
  expect(new Map(listed.map(({ notification_id: id, reason }) => [id, reason]))).toEqual(
    new Map(poison.map(({ id, kind }) => [id, reasons[kind]])),
  );
  for (const { detail } of listed) expect(detail).not.toBe("");

  mended = true;
  for (const { id } of listed) await replayDeadLetter(t.bus, id, { attempt: `mended-${id}` });
  await allSettled();
  // The fixed handler handles messages that it understands; messages that no version understands become dead letters again.
  const mends = poison.filter(({ kind }) => kind === "never").map(({ id }) => id);
  expect(mends).toHaveLength(6);
  for (const id of mends) expect(handled.get(id)).toBe(1);
  const after = await lettersBecome(20 + poison.length - mends.length);
  const names = new Set(listed.map(({ id }) => id));
  expect(after.filter(({ replays }) => replays === 1)).toHaveLength(20);
  for (const again of after.slice(20)) expect(names).toContain(again.replay_of);
});
