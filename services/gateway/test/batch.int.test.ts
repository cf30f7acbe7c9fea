import { randomUUID } from "node:crypto";
import { type Bucket, consume, defineHandler, openBucket } from "@herald/bus";
import {
  type GroupedSend,
  IdempotencyRecord,
  type NotificationId,
  newNotificationIds,
  readGroup,
  SendGroupV1,
  SendOneV1,
  SendV1,
  sendGroupOf,
} from "@herald/contracts";
import { eventually } from "@herald/testing";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { postBatch, small, smalls } from "./batch-fixture.ts";
import { type GatewayTest, startGatewayTest, type TestProject } from "./gateway-fixture.ts";

let system: GatewayTest;
let project: TestProject;
/** The clock moves only by `offset`: after ten seconds a key of an interrupted request is free, and a step may take that long. */
const began = Date.now();
let offset = 0;
let records: Bucket<IdempotencyRecord>;
let groups: { groupId: string; sends: GroupedSend[] }[];
let alone: SendOneV1[];
let large: SendV1[];
let stop: () => Promise<void>;

beforeAll(async () => {
  system = await startGatewayTest({ now: () => new Date(began + offset) });
  records = openBucket(system.bus, "push_idempotency", IdempotencyRecord);
  // Messages of an earlier test, which did not wait for them, are of another project.
  const isOwn = ({ projectId }: { projectId: string }) => projectId === project.id;
  const consuming = await consume(system.bus, [
    defineHandler({
      durable: "dispatch-send-groups",
      message: SendGroupV1,
      handle: async ({ data: { groupId, ...group } }) => {
        const { sends } = readGroup(group);
        if (sends.some(isOwn)) groups.push({ groupId, sends });
      },
    }),
    defineHandler({
      durable: "dispatch-single-sends",
      message: SendOneV1,
      handle: async ({ data }) => void (isOwn(data) && alone.push(data)),
    }),
    defineHandler({
      durable: "dispatch-start",
      message: SendV1,
      handle: async ({ data }) => void (isOwn(data) && large.push(data)),
    }),
  ]);
  await eventually(() => expect(consuming.ready()).toBe(true));
  stop = () => consuming.stop(2_000);
});
afterAll(async () => {
  await stop();
  await system.stop();
});
beforeEach(async () => {
  [groups, alone, large] = [[], [], []];
  project = await system.project();
});
afterEach(() => {
  offset = 0;
});

const post = (notifications: unknown, key?: string) => postBatch(system, project, notifications, key);

const grouped = () => groups.flatMap(({ sends }) => sends);
const titles = (sends: readonly { content: { title?: string | undefined } }[]) =>
  sends.map(({ content }) => content.title);

describe("a batch", () => {
  test("is accepted in the order of the request, in as few messages as it fits", async () => {
    const wanted = smalls(500);
    const answer = await post(wanted);
    expect(answer.status).toBe(202);
    const ids: string[] = answer.body.data.map(({ id }: { id: string }) => id);
    expect(new Set(ids).size).toBe(500);
    await eventually(() => expect(grouped()).toHaveLength(500));
    expect(groups).toHaveLength(2);
    for (const { groupId, sends } of groups)
      for (const { notificationId, content, projectId } of sends) {
        expect(projectId).toBe(project.id);
        expect(sendGroupOf(notificationId)).toBe(groupId);
        expect(content.title).toBe(wanted[ids.indexOf(notificationId)]?.title);
      }
  });

  test("shares messages with other requests of the same moment", async () => {
    const answers = await Promise.all(Array.from({ length: 40 }, () => post(smalls(3), randomUUID())));
    expect(answers.filter(({ status }) => status !== 202)).toEqual([]);
    const ids = answers.flatMap(({ body }) => body.data.map(({ id }: { id: string }) => id));
    await eventually(() =>
      expect(
        grouped()
          .map(({ notificationId }) => notificationId)
          .sort(),
      ).toEqual(ids.sort()),
    );
    expect(groups.length).toBeLessThan(answers.length);
  });

  test("sends each notification the way of its kind", async () => {
    const sendAt = new Date(Date.now() + 3_600_000).toISOString();
    const answer = await post([
      small("one"),
      { title: "topic", targets: ["news"] },
      { title: "all", targets: ["all"] },
      small("later", { send_at: sendAt }),
      small("two"),
    ]);
    const ids = answer.body.data.map(({ id }: { id: string }) => id);
    await eventually(() => expect([grouped().length, large.length]).toEqual([2, 3]));
    expect(titles(grouped())).toEqual(["one", "two"]);
    expect(titles(large).sort()).toEqual(["all", "later", "topic"]);
    for (const { notificationId, content } of [...grouped(), ...large])
      expect(ids.indexOf(notificationId)).toBe(["one", "topic", "all", "later", "two"].indexOf(content.title ?? ""));
  });

  test("of large notifications is spread over messages that the broker takes", async () => {
    const heavy = Array.from({ length: 60 }, (_, index) =>
      small(`heavy-${index}`, { data: { x: "y".repeat(40_000) } }),
    );
    const answer = await post(heavy);
    expect(answer.status, JSON.stringify(answer.body).slice(0, 300)).toBe(202);
    await eventually(() => expect(grouped()).toHaveLength(60));
    for (const { sends } of groups) expect(JSON.stringify(sends).length).toBeLessThan(700_000);
    expect(groups.length).toBeLessThan(8);
  });
});

describe("what is refused of a batch", () => {
  test("is reported for each notification with the field's path, and the others are sent", async () => {
    const answer = await post([
      small("good"),
      { title: "Hello", targets: [] },
      { targets: ["token:x"], ttl: -1 },
      null,
      small("dry", { dry_run: true }),
      small("late", { send_at: "2999-01-01T00:00:00Z" }),
      small("typo", { tilte: "x" }),
      small("plain", { dry_run: false }),
    ]);
    expect(answer.status).toBe(202);
    expect(answer.body.data).toEqual([
      { id: expect.stringMatching(/^ntf_/) },
      { errors: ["notifications.1.targets: at least one target is required"] },
      {
        errors: [
          "notifications.2.ttl: must be at least 0",
          "notifications.2: a `title` or a `body` is required unless `silent` is true or `push_type` is set",
        ],
      },
      { errors: ["notifications.3: must be an object"] },
      {
        errors: ["notifications.4.dry_run: is not accepted in a batch; use POST /api/v1/notifications"],
      },
      { errors: ["notifications.5.send_at: must be at most 30 days ahead"] },
      { errors: ["notifications.6.tilte: unknown field; did you mean `title`?"] },
      { id: expect.stringMatching(/^ntf_/) },
    ]);
    await eventually(() => expect(titles(grouped())).toEqual(["good", "plain"]));
  });

  test("is a 422 when every notification is refused, and does not use up the key", async () => {
    const key = randomUUID();
    const answer = await post([{ title: "x", targets: [] }, { targets: ["all"] }], key);
    expect([answer.status, answer.problem.errors]).toEqual([
      422,
      [
        "notifications.0.targets: at least one target is required",
        "notifications.1: a `title` or a `body` is required unless `silent` is true or `push_type` is set",
      ],
    ]);
    expect((await post([small("now")], key)).status).toBe(202);
  });

  test.each<[unknown, string]>([
    [undefined, "notifications: is required and must be a list"],
    [[], "notifications: at least one notification is required"],
    [Array.from({ length: 501 }, () => 1), "notifications: at most 500 notifications are accepted"],
    [{}, "notifications: must be a list"],
  ])("as a whole: case %#", async (notifications, problem) => {
    const answer = await post(notifications);
    expect([answer.status, answer.problem.errors]).toEqual([422, [problem]]);
  });

  test("is described a hundred times at most, over all notifications", async () => {
    const typos = Object.fromEntries(Array.from({ length: 30 }, (_, index) => [`field${index}`, index]));
    const answer = await post([
      ...Array.from({ length: 400 }, () => ({ targets: ["token:x"], ...typos })),
      small("good"),
    ]);
    expect(answer.status).toBe(202);
    const errors: string[] = answer.body.data.flatMap((one: { errors?: string[] }) => one.errors ?? []);
    expect(errors.filter((problem) => !/more problems like these/.test(problem)).length).toBeLessThanOrEqual(100);
    expect(answer.body.data[399].errors).toEqual([expect.stringMatching(/^notifications\.399: \d+ more problems/)]);
    for (const problem of errors) expect(problem).toMatch(/^notifications\.\d+/);
  });

  test("is counted behind a hundred, also where only its time is wrong", async () => {
    const late = Array.from({ length: 120 }, () => small("late", { send_at: "2999-01-01T00:00:00Z" }));
    const { status, problem } = await post(late);
    expect(status).toBe(422);
    expect(problem.errors[99]).toBe("notifications.99.send_at: must be at most 30 days ahead");
    expect(problem.errors.slice(100)).toEqual(
      Array.from({ length: 20 }, (_, index) => `notifications.${100 + index}: 1 more problems like these`),
    );
  });

  test("includes a body of more than 4 MiB, and none below", async () => {
    const filled = (bytes: number) =>
      JSON.stringify({ notifications: [small("x", { web: { x: "y".repeat(bytes) } })] });
    const call = (body: string) => system.call("POST /api/v1/notifications/batch", { token: project.token, body });
    expect((await call(filled(4_194_304))).status).toBe(413);
    expect((await call(filled(4_193_000))).status).toBe(422);
  });
});

describe("a batch under an Idempotency-Key", () => {
  const mixed = () => [
    small("a"),
    { title: "bad", targets: [] },
    small("b"),
    { title: "topic", targets: ["news"] },
    small("dry", { dry_run: true }),
  ];

  test("is sent once, and a replay answers the same, with another body 422", async () => {
    const key = randomUUID();
    const first = await post(mixed(), key);
    const again = await post(mixed(), key);
    expect(again.headers.get("idempotent-replayed")).toBe("true");
    expect([again.status, again.body]).toEqual([202, first.body]);
    expect((await post([small("c")], key)).status).toBe(422);
    await eventually(() => expect([grouped().length, large.length]).toEqual([2, 1]));
    expect(alone).toEqual([]);
  });

  test("keeps its answer, also where some or all would be accepted or refused by now", async () => {
    const key = randomUUID();
    const late = {
      title: "late",
      targets: ["token:late"],
      send_at: new Date(Date.now() + 31 * 86_400_000).toISOString(),
    };
    const first = await post([late, small("a")], key);
    expect(first.body.data[0].errors).toHaveLength(1);
    offset = 2 * 86_400_000;
    // No real record outlives its day; the test checks only that the first notification is valid by now.
    const again = await post([late, small("a")], key);
    expect(again.headers.get("idempotent-replayed")).toBe("true");
    expect(again.body.data[1]).toEqual(first.body.data[1]);
    expect(again.body.data[0].errors).toHaveLength(1);
  });

  test("that broke off is sent again under the same ids, and what was refused stays refused", async () => {
    const key = randomUUID();
    const first = await post(mixed(), key);
    await eventually(() => expect([grouped().length, large.length]).toEqual([2, 1]));
    const [id] = first.body.data.map((one: { id?: string }) => one.id);
    const places: string[] = [];
    const watching = records.watch(({ key: place, value }) => {
      if (value?.id === id) places.push(place);
    });
    await eventually(() => expect(watching.ready()).toBe(true));
    await watching.stop();
    const [place = ""] = places;
    // As if the gateway had crashed before it published: the record contains other ids, of which dispatch knows only the first.
    const record = (await records.get(place))?.value;
    const [a, b, topic] = newNotificationIds(new Date(), 3) as [NotificationId, NotificationId, NotificationId];
    if (record === undefined) throw new Error("the record is not there");
    const { groups: _, ...batch } = record.batch ?? {};
    await records.put(place, { ...record, id: a, batch: { ...batch, groups: [[a, 3]] } });
    system.peers.store({ ...grouped()[0], notificationId: a } as SendV1);
    expect((await post(mixed(), key)).status).toBe(409);
    offset = 10_001;
    const healed = await post(mixed(), key);
    expect(healed.status).toBe(202);
    expect(healed.body.data.map((one: { id?: string }) => one.id)).toEqual([a, undefined, b, topic, undefined]);
    await eventually(() => expect(titles(alone).sort()).toEqual(["a", "b"]));
    await eventually(() => expect(large).toHaveLength(2));
    const published = [...alone, ...large.slice(1)].map(({ notificationId }) => notificationId);
    expect(published.sort()).toEqual([a, b, topic].sort());
    expect((await post(mixed(), key)).headers.get("idempotent-replayed")).toBe("true");
  });
});
