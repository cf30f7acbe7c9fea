import { randomUUID } from "node:crypto";
import { areConsumersReady, type Bucket, consume, defineHandler, openBucket } from "@herald/bus";
import {
  IdempotencyRecord,
  type NotificationId,
  newNotificationId,
  SendGroupV1,
  SendOneV1,
  sendGroupOf,
} from "@herald/contracts";
import { type BrokerHands, eventually, operateBroker } from "@herald/testing";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { createApp } from "../src/app.ts";
import {
  type Answered,
  callAt,
  configOf,
  type GatewayTest,
  startGatewayTest,
  type TestProject,
} from "./gateway-fixture.ts";

let system: GatewayTest;
let project: TestProject;
/** Moves only by `offset`: a key whose request seems interrupted for ten seconds may be used again, and a step may take that long. */
const began = Date.now();
let offset = 0;
const now = () => new Date(began + offset);
let records: Bucket<IdempotencyRecord>;
/** What was published, by how it travelled. */
let groups: SendGroupV1[];
let alone: SendOneV1[];
let stop: () => Promise<void>;
let hands: BrokerHands;
/** Called with the subject's kind as soon as something of it is stored. */
let onStored: (what: "key" | "group") => void;

beforeAll(async () => {
  system = await startGatewayTest({ now });
  project = await system.project();
  records = openBucket(system.bus, "push_idempotency", IdempotencyRecord);
  hands = await operateBroker(system.broker);
  const handlers = [
    defineHandler({
      durable: "dispatch-send-groups",
      message: SendGroupV1,
      handle: async ({ data }) => {
        groups.push(data);
        onStored("group");
      },
    }),
    defineHandler({
      durable: "dispatch-single-sends",
      message: SendOneV1,
      handle: async ({ data }) => void alone.push(data),
    }),
  ];
  [groups, alone, onStored] = [[], [], () => {}];
  const consuming = await consume(system.bus, handlers);
  await eventually(() => expect(areConsumersReady(consuming)).toBe(true));
  stop = () => consuming.stop(2_000);
});
afterAll(async () => {
  await stop();
  await hands.close();
  await system.stop();
});
afterEach(async () => {
  offset = 0;
  onStored = () => {};
  await system.proxy.heal();
  await system.ready();
});

const newKeys = (count: number): string[] => Array.from({ length: count }, () => randomUUID());

const send = (key: string, at = system.address()): Promise<Answered> =>
  callAt(at, "POST /api/v1/notifications", {
    token: project.token,
    body: { notification: { title: key, targets: [`token:${key}`] } },
    headers: { "idempotency-key": key },
  });

const idOf = ({ body }: Answered): NotificationId => body.data.id;

/** How the sends with these titles travelled so far. */
const travelled = (keys: readonly string[]) => {
  const wanted = new Set(keys);
  const of = (sends: readonly { content: { title?: string | undefined }; notificationId: NotificationId }[]) =>
    sends
      .filter(({ content: { title = "" } }) => wanted.has(title))
      .map((one) => [one.content.title, one.notificationId]);
  return { grouped: of(groups.flatMap(({ sends }) => sends)), alone: of(alone) };
};

const placeOf = async (id: NotificationId): Promise<string> => {
  let place: string | undefined;
  const watching = records.watch(({ key, value }) => {
    if (value?.id === id) place = key;
  });
  await eventually(() => expect(watching.ready()).toBe(true));
  await watching.stop();
  if (place === undefined) throw new Error(`no record is of ${id}`);
  return place;
};

/** A record once its answer is in the bucket, which is a little after the response. */
const answered = (place: string): Promise<IdempotencyRecord> =>
  eventually(async () => {
    const value = (await records.get(place))?.value;
    if (value?.answer === undefined) throw new Error(`the answer of ${place} is not recorded`);
    return value;
  });

/** A record as it was before its answer was noted. */
const unanswered = async (place: string): Promise<IdempotencyRecord> => {
  const { answer: _, ...rest } = await answered(place);
  return rest;
};

/** Repeats until all are accepted, ten seconds later than the first tries, and gives their ids. */
const healed = async (keys: readonly string[]): Promise<NotificationId[]> => {
  offset = 10_001;
  return eventually(async () => {
    const answers = await Promise.all(keys.map((key) => send(key)));
    expect(answers.map(({ status }) => status)).toEqual(keys.map(() => 202));
    return answers.map(idOf);
  });
};

/** Every send was published, all of its messages under the id that its request was given in the end. */
const expectOneIdEach = async (keys: readonly string[], ids: readonly NotificationId[]) => {
  await eventually(() => {
    const { grouped, alone: single } = travelled(keys);
    const found = new Map<string, Set<string>>();
    for (const [title = "", id = ""] of [...grouped, ...single])
      found.set(title, (found.get(title) ?? new Set()).add(id));
    expect(Object.fromEntries(found)).toEqual(Object.fromEntries(keys.map((key, at) => [key, new Set([ids[at]])])));
  });
  expect(new Set(ids).size).toBe(keys.length);
};

describe("sends with keys that come together", () => {
  test("share messages and are published once, and a replay gives each its answer again", async () => {
    const keys = newKeys(100);
    const answers = await Promise.all(keys.map((key) => send(key)));
    expect(answers.filter(({ status }) => status !== 202)).toEqual([]);
    await expectOneIdEach(keys, answers.map(idOf));
    const mine = groups.filter(({ sends }) => sends.some(({ content: { title = "" } }) => keys.includes(title)));
    expect(mine.length).toBeLessThan(keys.length);
    for (const { groupId, sends } of mine)
      for (const one of sends) {
        expect(sendGroupOf(one.notificationId)).toBe(groupId);
        expect(one.origin?.requestId).toBe(
          answers.find((answer) => idOf(answer) === one.notificationId)?.headers.get("x-request-id"),
        );
      }
    const again = await Promise.all(keys.map((key) => send(key)));
    expect(again.map(({ headers }) => headers.get("idempotent-replayed"))).toEqual(keys.map(() => "true"));
    expect(again.map(({ body }) => body)).toEqual(answers.map(({ body }) => body));
    expect(travelled(keys).grouped).toHaveLength(keys.length);
    expect(travelled(keys).alone).toEqual([]);
    expect((await answered(await placeOf(idOf(answers[50] as Answered)))).answer).toEqual({ status: 202 });
  });

  test("leave those alone whose key is taken: the others are accepted", async () => {
    const [taken = "", ...others] = newKeys(60);
    const first = await send(taken);
    await answered(await placeOf(idOf(first)));
    // As if another gateway had taken it: this one has forgotten it.
    const other = createApp(configOf(system.broker.url, system.broker.loginOf("gateway")), { now });
    await other.start();
    await eventually(async () => expect((await callAt(other.address(), "GET /readyz")).status).toBe(200));
    const answers = await Promise.all([taken, ...others].map((key) => send(key, other.address())));
    expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 202));
    expect(answers.filter(({ headers }) => headers.has("idempotent-replayed"))).toEqual([answers[0]]);
    expect(answers[0]?.body).toEqual(first.body);
    await expectOneIdEach([taken, ...others], answers.map(idOf));
    expect(travelled([taken]).grouped).toHaveLength(1);
    await other.stop();
  });

  test("of two gateways with the same keys in the same moment are sent by one of them each", async () => {
    const other = createApp(configOf(system.broker.url, system.broker.loginOf("gateway")), { now });
    await other.start();
    await eventually(async () => expect((await callAt(other.address(), "GET /readyz")).status).toBe(200));
    const keys = newKeys(80);
    const both = await Promise.all([
      ...keys.map((key) => send(key)),
      ...keys.toReversed().map((key) => send(key, other.address())),
    ]);
    expect(both.filter(({ status }) => status !== 202 && status !== 409)).toEqual([]);
    // Each gateway tells the other what it accepted a little after its responses.
    const ids = await eventually(async () => {
      const answers = await Promise.all(keys.map((key) => send(key)));
      expect(answers.map(({ status }) => status)).toEqual(keys.map(() => 202));
      return answers.map(idOf);
    });
    await expectOneIdEach(keys, ids);
    expect(travelled(keys).grouped).toHaveLength(keys.length);
    expect(travelled(keys).alone).toEqual([]);
    await other.stop();
  });

  test("with another body, or while the first is still running, are refused and their neighbours are not", async () => {
    const [reused = "", running = "", ...others] = newKeys(40);
    const first = await send(reused);
    const place = await placeOf(idOf(await send(running)));
    await records.put(place, await unanswered(place));
    const answers = await Promise.all([
      system.call("POST /api/v1/notifications", {
        token: project.token,
        body: { notification: { title: "Another", targets: ["token:x"] } },
        headers: { "idempotency-key": reused },
      }),
      ...[running, ...others].map((key) => send(key)),
    ]);
    expect(answers.slice(0, 2).map(({ status }) => status)).toEqual([422, 409]);
    expect(answers.slice(2).map(({ status }) => status)).toEqual(others.map(() => 202));
    expect((await send(reused)).body).toEqual(first.body);
  });
});

test("a key whose time has ended is a new one, at once", async () => {
  const keys = newKeys(3);
  const before = await Promise.all(keys.map((key) => send(key)));
  for (const answer of before) {
    const place = await placeOf(idOf(answer));
    await answered(place);
    await records.delete(place);
  }
  const after = await Promise.all(keys.map((key) => send(key)));
  expect(after.map(({ status, headers }) => [status, headers.has("idempotent-replayed")])).toEqual(
    keys.map(() => [202, false]),
  );
  expect(new Set([...before, ...after].map(idOf)).size).toBe(6);
  const topic = () =>
    system.call("POST /api/v1/topics", {
      token: project.token,
      body: { topic: { name: `topic-${keys[0]}` } },
      headers: { "idempotency-key": keys[0] ?? "" },
    });
  const made = await topic();
  await records.delete(await placeOf(made.body.data.id));
  // Executed again, and refused by what the first did.
  expect((await topic()).status).toBe(409);
});

test("a gateway that stops records the answers that it gave", async () => {
  const other = createApp(configOf(system.broker.url, system.broker.loginOf("gateway")), { now });
  await other.start();
  await eventually(async () => expect((await callAt(other.address(), "GET /readyz")).status).toBe(200));
  const keys = newKeys(30);
  const answers = await Promise.all(keys.map((key) => send(key, other.address())));
  await other.stop();
  const again = await Promise.all(keys.map((key) => send(key)));
  expect(again.map(({ status, headers }) => [status, headers.has("idempotent-replayed")])).toEqual(
    keys.map(() => [202, true]),
  );
  expect(again.map(idOf)).toEqual(answers.map(idOf));
});

describe("after a crash", () => {
  /** What a gateway that died leaves of a key. */
  const rewind = async (id: NotificationId, change: Partial<IdempotencyRecord> = {}) => {
    const place = await placeOf(id);
    await records.put(place, { ...(await unanswered(place)), ...change });
  };

  test("before the keys are written, a repeat is a first try", async () => {
    await system.proxy.cut();
    const keys = newKeys(30);
    const answers = await Promise.all(keys.map((key) => send(key)));
    expect(answers.map(({ status }) => status)).toEqual(keys.map(() => 503));
    await system.proxy.heal();
    await system.ready();
    const again = await Promise.all(keys.map((key) => send(key)));
    expect(again.map(({ status }) => status)).toEqual(keys.map(() => 202));
    await expectOneIdEach(keys, again.map(idOf));
    expect(travelled(keys).alone).toEqual([]);
  });

  test("between the keys and the message, a repeat ten seconds later sends under the id that was noted, alone", async () => {
    const keys = newKeys(30);
    const firsts = await Promise.all(keys.map((key) => send(key)));
    await expectOneIdEach(keys, firsts.map(idOf));
    // As if none had been published: other ids are noted.
    const noted = await Promise.all(
      firsts.map(async (first) => {
        const id = newNotificationId(new Date());
        await rewind(idOf(first), { id });
        return id;
      }),
    );
    expect((await Promise.all(keys.map((key) => send(key)))).map(({ status }) => status)).toEqual(keys.map(() => 409));
    const ids = await healed(keys);
    expect(ids).toEqual(noted);
    await eventually(() => expect(travelled(keys).alone).toHaveLength(keys.length));
    expect(new Set(travelled(keys).alone.map(([, id]) => id))).toEqual(new Set(noted));
  });

  test("between the message and the answers, a repeat gives the same answer and publishes the same id again", async () => {
    const keys = newKeys(30);
    const firsts = await Promise.all(keys.map((key) => send(key)));
    for (const first of firsts) await rewind(idOf(first));
    const ids = await healed(keys);
    expect(ids).toEqual(firsts.map(idOf));
    await expectOneIdEach(keys, ids);
    await eventually(() => expect(travelled(keys).alone).toHaveLength(keys.length));
    const replayed = await send(keys[0] ?? "");
    expect(replayed.headers.get("idempotent-replayed")).toBe("true");
    expect(replayed.body).toEqual(firsts[0]?.body);
  });
});

describe("with the broker gone", () => {
  test.each(["key", "group"] as const)(
    "right after a %s was stored: nothing is lost, and each has one id",
    async (what) => {
      const keys = newKeys(50);
      let cut: Promise<void> | undefined;
      onStored = (stored) => {
        if (stored === what) cut ??= system.proxy.cut();
      };
      const watching = records.watch(({ value }) => {
        if (value !== undefined && watching.ready()) onStored("key");
      });
      await eventually(() => expect(watching.ready()).toBe(true));
      const answers = await Promise.all(keys.map((key) => send(key)));
      await watching.stop();
      await cut;
      expect(answers.filter(({ status }) => status === 503).length).toBeGreaterThan(0);
      expect(answers.filter(({ status }) => status !== 503 && status !== 202)).toEqual([]);
      await system.proxy.heal();
      await system.ready();
      const ids = await healed(keys);
      for (const [at, answer] of answers.entries()) if (answer.status === 202) expect(idOf(answer)).toBe(ids[at]);
      await expectOneIdEach(keys, ids);
    },
  );

  test("a message that no stream takes gives the keys back: a repeat need not wait", async () => {
    const before = await hands.limit("PUSH_SEND", 1);
    const keys = newKeys(30);
    const answers = await Promise.all(keys.map((key) => send(key)));
    expect(answers.map(({ problem }) => problem.type)).toEqual(keys.map(() => "/docs/errors#queue-full"));
    await hands.limit("PUSH_SEND", before);
    const again = await Promise.all(keys.map((key) => send(key)));
    expect(again.map(({ status }) => status)).toEqual(keys.map(() => 202));
    await expectOneIdEach(keys, again.map(idOf));
  });
});
