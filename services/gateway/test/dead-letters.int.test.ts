import { randomUUID } from "node:crypto";
import { areConsumersReady, type Consuming, consume, defineHandler, publish } from "@herald/bus";
import {
  type DeadLetter,
  DeliverBatchV1,
  DueV1,
  newDeviceId,
  newNotificationId,
  newProjectId,
  OpenGroupV1,
  ProjectDeletedV1,
  type ProjectId,
  type Replay,
  SendV1,
} from "@herald/contracts";
import { eventually } from "@herald/testing";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { z } from "zod";
import { adminToken, apnsToken, type GatewayTest, startGatewayTest, type TestProject } from "./gateway-fixture.ts";
import { writeDeadLetter } from "./write-dead-letter.ts";

let system: GatewayTest;
let project: TestProject;
let handled: SendV1[];
let opened: OpenGroupV1[];
let consuming: Consuming | undefined;
beforeAll(async () => {
  system = await startGatewayTest();
  project = await system.project();
});
afterEach(async () => {
  await consuming?.stop(2_000);
  consuming = undefined;
  system.peers.settled.clear();
  system.peers.back();
});
afterAll(() => system.stop());

/** Handles sends and opens, with the contract of sends that it is given. */
const work = async (sends: typeof SendV1 = SendV1) => {
  await consuming?.stop(2_000);
  handled = [];
  opened = [];
  const started = await consume(system.bus, [
    defineHandler({ durable: "dispatch-start", message: sends, handle: async ({ data }) => void handled.push(data) }),
    defineHandler({
      durable: "analytics-open-groups",
      message: OpenGroupV1,
      handle: async ({ data }) => void opened.push(data),
    }),
  ]);
  consuming = started;
  await eventually(() => expect(areConsumersReady(started)).toBe(true));
  // Tests without a handler leave what they replayed in the queue.
  const marker = opensOf(project.id);
  await publish(system.bus, OpenGroupV1, marker, { id: randomUUID() });
  await eventually(() => expect(opened).toContainEqual(marker));
  handled = [];
  opened = [];
};
const schema = SendV1.schema.extend({ fromTheFuture: z.string() });
const brokenSend = { ...SendV1, schema } as unknown as typeof SendV1;

const admin = (route: string, body?: unknown, headers: Record<string, string> = {}) =>
  system.call(route.replace(" ", " /admin/v1/dead-letters"), { token: adminToken, body, headers });
const replay = (id: string, headers?: Record<string, string>) => admin(`POST /${id}/replay`, undefined, headers);
const replayAll = async (ids: readonly string[]) => admin("POST /replay", { dead_letters: ids });
const statuses = (replays: readonly Replay[]) => replays.map(({ id, status }) => [id, status]);

const sendOf = (projectId: ProjectId): SendV1 => ({
  projectId,
  notificationId: newNotificationId(new Date()),
  content: { title: "Hello", targets: ["all"] },
  acceptedAt: new Date().toISOString(),
  expiresAt: new Date(Date.now() + 3_600_000).toISOString(),
});
const opensOf = (projectId: ProjectId): OpenGroupV1 => ({
  projectId,
  opens: [
    {
      notificationId: newNotificationId(new Date()),
      deviceId: newDeviceId(new Date()),
      openedAt: new Date().toISOString(),
    },
  ],
});
const deadSend = (send = sendOf(project.id)) => writeDeadLetter(system.bus, "dispatch-start", SendV1, send);
const deadOpens = (opens = opensOf(project.id)) =>
  writeDeadLetter(system.bus, "analytics-open-groups", OpenGroupV1, opens);

/** The newest dead letters of a durable, once there is one of this notification. */
const letterOf = (notificationId: string) =>
  eventually(async (): Promise<DeadLetter> => {
    const { body } = await admin("GET ?durable=dispatch-start&per_page=100&page=1");
    const found = body.data.findLast((letter: DeadLetter) => letter.notification_id === notificationId);
    if (found === undefined) throw new Error("it is not there");
    return found;
  });

test("what a broken version gave up is listed with its reason and without secrets, and processed after the repair", async () => {
  await work(brokenSend);
  const token = apnsToken();
  const notification = { title: "planted-title", body: "planted-body", targets: [`token:${token}`, "all"] };
  const sent = await system.call("POST /api/v1/notifications", { token: project.token, body: { notification } });
  expect(sent.status).toBe(202);
  const letter = await letterOf(sent.body.data.id);
  expect(letter).toMatchObject({
    durable: "dispatch-start",
    message: "SendV1",
    project_id: project.id,
    reason: "schema",
    detail: expect.stringContaining("fromTheFuture"),
    deliveries: 1,
  });
  const inspected = await admin(`GET /${letter.id}`);
  expect(inspected).toMatchObject({ status: 200, body: { data: letter } });
  const shown = JSON.stringify([letter, inspected.body, [...inspected.headers]]);
  for (const secret of [token, "planted-title", "planted-body", project.token]) expect(shown).not.toContain(secret);

  await work();
  const replayed = await replay(letter.id);
  expect(replayed).toMatchObject({
    status: 202,
    body: { data: { id: letter.id, status: "replayed", replays: 1, detail: `published again on ${letter.subject}` } },
  });
  expect(JSON.stringify(replayed.body)).not.toContain("planted");
  await eventually(() => expect(handled).toMatchObject([{ notificationId: sent.body.data.id, content: notification }]));
  const { replayed_at } = replayed.body.data;
  expect((await admin(`GET /${letter.id}`)).body.data).toEqual({ ...letter, replays: 1, replayed_at });
});

describe("one replay", () => {
  test("can be followed by another, which says so", async () => {
    const id = await deadOpens();
    await replay(id);
    const again = await replay(id);
    expect(again.body.data).toMatchObject({
      replays: 2,
      detail: expect.stringContaining("it was replayed once before"),
    });
    expect((await replay(id)).body.data.detail).toContain("it was replayed 2 times before");
  });

  test("with an Idempotency-Key is made once, and another body is refused", async () => {
    await work();
    const opens = opensOf(project.id);
    const id = await deadOpens(opens);
    const key = { "idempotency-key": randomUUID() };
    const first = await replay(id, key);
    const second = await replay(id, key);
    expect([first.status, second.status]).toEqual([202, 202]);
    expect(second.body).toEqual(first.body);
    expect([first, second].map(({ headers }) => headers.get("idempotent-replayed"))).toEqual([null, "true"]);
    const last = opensOf(project.id);
    await replay(await deadOpens(last));
    await eventually(() => expect(opened).toContainEqual(last));
    expect(opened).toEqual([opens, last]);
    const many = { "idempotency-key": randomUUID() };
    expect((await admin("POST /replay", { dead_letters: [id] }, many)).status).toBe(200);
    expect((await admin("POST /replay", { dead_letters: ["1"] }, many)).status).toBe(422);
  });

  test("of an unreadable message says that it will probably fail again", async () => {
    const id = await writeDeadLetter(system.bus, "dispatch-start", SendV1, sendOf(project.id), { body: { odd: 1 } });
    const { status, body } = await replay(id);
    expect([status, body.data.status]).toEqual([202, "replayed"]);
    expect(body.data.detail).toContain("does not match SendV1, so it will probably fail again");
  });

  test.each(["0", "x", "1e3", "-1", "999999999"])("of %s, which does not exist, is a 404", async (id) => {
    for (const answer of [await replay(id), await admin(`GET /${id}`)]) {
      expect([answer.status, answer.problem.type]).toEqual([404, "/docs/errors#dead-letter-not-found"]);
    }
  });

  const refusals = {
    "a send that was given up": async () => {
      const send = sendOf(project.id);
      system.peers.settled.set(send.notificationId, "it was given up");
      return { id: await deadSend(send), words: "it was given up; send a new notification" };
    },
    "a batch whose devices are final": async () => {
      const { projectId, notificationId } = sendOf(project.id);
      const batchId = `${notificationId}/0/0`;
      const lane = "direct" as const;
      const batch = { batchId, projectId, notificationId, lane, platform: "ios" as const, devices: [] };
      system.peers.settled.set(batchId, "its devices are final");
      return {
        id: await writeDeadLetter(system.bus, "dispatch-direct-ios", DeliverBatchV1, batch),
        words: "are final",
      };
    },
    "the wake-up of such a batch": async () => {
      const { projectId, notificationId } = sendOf(project.id);
      const id = `${notificationId}/0/0/2`;
      system.peers.settled.set(id, "its devices are final");
      const due = { kind: "batch" as const, projectId, key: id.replaceAll("/", "-"), id };
      return { id: await writeDeadLetter(system.bus, "dispatch-due", DueV1, due), words: "are final" };
    },
    "a message of a project that is gone": async () => ({
      id: await deadSend(sendOf(newProjectId(new Date()))),
      words: "its project no longer exists",
    }),
    "a subject that is no message's": async () => ({
      id: await writeDeadLetter(system.bus, "dispatch-start", SendV1, sendOf(project.id), {
        subject: "$KV.push_tokens.planted",
      }),
      words: "not one on which Herald publishes",
    }),
  };

  test.each(Object.entries(refusals))("of %s is refused in words, and publishes nothing", async (_, make) => {
    await work();
    const { id, words } = await make();
    const refused = await replay(id);
    expect([refused.status, refused.problem.type]).toEqual([409, "/docs/errors#replay-refused"]);
    expect(refused.problem.errors).toEqual([expect.stringMatching(/^id: /)]);
    expect(refused.problem.errors[0]).toContain(words);
    const many = await replayAll([id]);
    expect(many.body.data.replays).toMatchObject([{ id, status: "refused", detail: expect.stringContaining(words) }]);
    expect((await admin(`GET /${id}`)).body.data).not.toHaveProperty("replays");
    const last = opensOf(project.id);
    await replay(await deadOpens(last));
    await eventually(() => expect(opened).toEqual([last]));
    expect(handled).toEqual([]);
  });

  test("of the event that a project is gone is made: it is a fact, and needs no project", async () => {
    const projectId = newProjectId(new Date());
    const event = { project_id: projectId, at: new Date().toISOString() };
    const id = await writeDeadLetter(system.bus, "dispatch-delete-project", ProjectDeletedV1, event);
    expect((await replay(id)).status).toBe(202);
  });
});

describe("many replays", () => {
  test("are answered one by one, each dead letter once", async () => {
    await work();
    const [first, second] = [opensOf(project.id), opensOf(project.id)];
    const refused = await deadSend(sendOf(newProjectId(new Date())));
    const ids = [await deadOpens(first), refused, "999999999", await deadOpens(second)] as const;
    const { status, body } = await replayAll([...ids, ids[0]]);
    expect(status).toBe(200);
    expect(statuses(body.data.replays)).toEqual([
      [ids[0], "replayed"],
      [ids[1], "refused"],
      [ids[2], "not-found"],
      [ids[3], "replayed"],
    ]);
    for (const { detail } of body.data.replays) expect(detail).not.toMatch(/^id:|^$/);
    await eventually(() => expect(opened).toEqual([first, second]));
  });

  test.each([
    [{}, "dead_letters: is required and must be a list"],
    [[], "must be { dead_letters: [id, …] } or { durable, after? }"],
    [{ dead_letters: [] }, "dead_letters: at least one id is required"],
    [{ dead_letters: Array(101).fill("1") }, "dead_letters: must be at most 100 ids"],
    [{ dead_letters: ["x"] }, "dead_letters.0: must be a dead letter's id, such as 17"],
    [{ durable: "dispatch-strat" }, "durable: must be one of"],
    [{ durable: "dispatch-start", after: "x" }, "after: must be empty, to begin, or the `next` of the answer before"],
    [{ durable: "dispatch-start", dead_letters: ["1"] }, "unknown field"],
  ])("are refused for %j", async (body, words) => {
    const refused = await admin("POST /replay", body);
    expect(refused.status).toBe(422);
    expect(refused.problem.errors.join()).toContain(words);
  });

  test("of a durable go on where the last answer ended, and leave out what was replayed before", async () => {
    await work();
    const durable = "analytics-open-groups";
    const walk = async () => {
      const seen: Replay[] = [];
      let calls = 0;
      for (let after: string | null = ""; after !== null; calls++) {
        const { status, body } = await admin("POST /replay", { durable, after });
        expect(status, JSON.stringify(body)).toBe(200);
        expect(body.data.replays.length).toBeLessThanOrEqual(100);
        seen.push(...body.data.replays);
        after = body.data.next;
      }
      return { seen, calls };
    };
    await walk();
    opened = [];
    const ids: string[] = [];
    for (let n = 0; n < 250; n++) ids.push(await deadOpens());
    const alone = ids[99] ?? "";
    await replay(alone);
    const { seen, calls } = await walk();
    expect(calls).toBeGreaterThanOrEqual(3);
    expect(statuses(seen)).toEqual(ids.filter((id) => id !== alone).map((id) => [id, "replayed"]));
    await eventually(() => expect(opened).toHaveLength(250));
    expect((await walk()).seen).toEqual([]);
  });
});

test("1,050 dead letters are walked by their links and by key, each once", async () => {
  const durable = "registry-retire-device";
  const ids: string[] = [];
  for (let n = 0; n < 105; n++) {
    const some = Array.from({ length: 10 }, () =>
      writeDeadLetter(system.bus, durable, ProjectDeletedV1, {
        project_id: project.id,
        at: new Date().toISOString(),
      }),
    );
    ids.push(...(await Promise.all(some)));
  }
  ids.sort((one, other) => Number(one) - Number(other));
  const follow = async (first: string) => {
    const seen: string[] = [];
    for (let next: string | undefined = first; next !== undefined; ) {
      const { status, body, headers } = await system.call(`GET ${next}`, { token: adminToken });
      expect(status).toBe(200);
      if (body.pagination) expect(body.pagination).toMatchObject({ count: 1_050, pages: 11, last: 11 });
      seen.push(...body.data.map(({ id }: DeadLetter) => id));
      next = /<([^>]*)>; rel="next"/.exec(headers.get("link") ?? "")?.[1];
    }
    return seen;
  };
  const list = `/admin/v1/dead-letters?durable=${durable}&per_page=100`;
  expect(await follow(list)).toEqual(ids);
  expect(await follow(`${list}&after=`)).toEqual(ids);
});

describe("when something is unavailable", () => {
  test("nothing is shown or replayed without the bus, and all of it when it is back", async () => {
    const id = await deadOpens();
    await system.proxy.cut();
    try {
      for (const answer of [
        await admin("GET "),
        await admin("GET ?after="),
        await admin(`GET /${id}`),
        await replay(id),
        await replayAll([id, id]),
        await admin("POST /replay", { durable: "dispatch-start" }),
      ]) {
        expect([answer.status, answer.problem.type]).toEqual([503, "/docs/errors#bus-unavailable"]);
        expect(Number(answer.headers.get("retry-after"))).toBeGreaterThan(0);
      }
    } finally {
      await system.proxy.heal();
    }
    await system.ready();
    expect((await admin(`GET /${id}`)).body.data).not.toHaveProperty("replays");
    expect((await replay(id)).body.data.replays).toBe(1);
  });

  test("a send is not replayed before dispatch has reported its state", async () => {
    await work();
    const send = sendOf(project.id);
    const [opens, sends, rest] = [await deadOpens(), await deadSend(send), await deadOpens()];
    system.peers.away("dispatch");
    expect((await replay(sends)).status).toBe(503);
    expect((await replayAll([sends, opens])).status).toBe(503);
    // What has happened is told, and nothing more is tried.
    const { status, body } = await replayAll([opens, sends, rest]);
    expect(status).toBe(200);
    expect(statuses(body.data.replays)).toEqual([
      [opens, "replayed"],
      [sends, "failed"],
      [rest, "failed"],
    ]);
    expect(body.data.replays[2].detail).toBe("not tried");
    system.peers.back();
    expect(statuses((await replayAll([sends, rest])).body.data.replays)).toEqual([
      [sends, "replayed"],
      [rest, "replayed"],
    ]);
    await eventually(() => expect(handled).toEqual([send]));
    await eventually(() => expect(opened).toHaveLength(2));
  });
});
