import { randomUUID } from "node:crypto";
import { DeliverBatchV1, DueV1, newProjectId, ProjectDeletedV1, type Replay, SendV1 } from "@herald/contracts";
import { eventually } from "@herald/testing";
import { describe, expect, test } from "vitest";
import { opensOf, sendOf, statuses, useDeadLetters } from "./dead-letters-fixture.ts";
import { writeDeadLetter } from "./write-dead-letter.ts";

const { system, project, handled, opened, work, admin, replay, replayAll, deadSend, deadOpens } = useDeadLetters();

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
    const opens = opensOf(project().id);
    const id = await deadOpens(opens);
    const key = { "idempotency-key": randomUUID() };
    const first = await replay(id, key);
    const second = await replay(id, key);
    expect([first.status, second.status]).toEqual([202, 202]);
    expect(second.body).toEqual(first.body);
    expect([first, second].map(({ headers }) => headers.get("idempotent-replayed"))).toEqual([null, "true"]);
    const last = opensOf(project().id);
    await replay(await deadOpens(last));
    await eventually(() => expect(opened).toContainEqual(last));
    expect(opened).toEqual([opens, last]);
    const many = { "idempotency-key": randomUUID() };
    expect((await admin("POST /replay", { dead_letters: [id] }, many)).status).toBe(200);
    expect((await admin("POST /replay", { dead_letters: ["1"] }, many)).status).toBe(422);
  });

  test("of an unreadable message says that it will probably fail again", async () => {
    const id = await writeDeadLetter(system().bus, "dispatch-start", SendV1, sendOf(project().id), {
      body: { odd: 1 },
    });
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
      const send = sendOf(project().id);
      system().peers.settled.set(send.notificationId, "it was given up");
      return { id: await deadSend(send), words: "it was given up; send a new notification" };
    },
    "a batch whose devices are final": async () => {
      const { projectId, notificationId } = sendOf(project().id);
      const batchId = `${notificationId}/0/0`;
      const lane = "direct" as const;
      const batch = { batchId, projectId, notificationId, lane, platform: "ios" as const, devices: [] };
      system().peers.settled.set(batchId, "its devices are final");
      return {
        id: await writeDeadLetter(system().bus, "dispatch-direct-ios", DeliverBatchV1, batch),
        words: "are final",
      };
    },
    "the wake-up of such a batch": async () => {
      const { projectId, notificationId } = sendOf(project().id);
      const id = `${notificationId}/0/0/2`;
      system().peers.settled.set(id, "its devices are final");
      const due = { kind: "batch" as const, projectId, key: id.replaceAll("/", "-"), id };
      return { id: await writeDeadLetter(system().bus, "dispatch-due", DueV1, due), words: "are final" };
    },
    "a message of a project that is gone": async () => ({
      id: await deadSend(sendOf(newProjectId(new Date()))),
      words: "its project no longer exists",
    }),
    "a subject that is no message's": async () => ({
      id: await writeDeadLetter(system().bus, "dispatch-start", SendV1, sendOf(project().id), {
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
    const last = opensOf(project().id);
    await replay(await deadOpens(last));
    await eventually(() => expect(opened).toEqual([last]));
    expect(handled).toEqual([]);
  });

  test("of the event that a project was deleted is accepted, because it needs no project", async () => {
    const projectId = newProjectId(new Date());
    const event = { project_id: projectId, at: new Date().toISOString() };
    const id = await writeDeadLetter(system().bus, "dispatch-delete-project", ProjectDeletedV1, event);
    expect((await replay(id)).status).toBe(202);
  });
});

describe("many replays", () => {
  test("are answered one by one, each dead letter once", async () => {
    await work();
    const [first, second] = [opensOf(project().id), opensOf(project().id)];
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

  test("of a durable continue where the last answer ended, and skip letters that were replayed before", async () => {
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
    opened.length = 0;
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
describe("when something is unavailable", () => {
  test("nothing is shown or replayed without the bus, and all of it when it is back", async () => {
    const id = await deadOpens();
    await system().proxy.cut();
    try {
      // Each waits for the bus.
      const answers = await Promise.all([
        admin("GET "),
        admin("GET ?after="),
        admin(`GET /${id}`),
        replay(id),
        replayAll([id, id]),
        admin("POST /replay", { durable: "dispatch-start" }),
      ]);
      for (const answer of answers) {
        expect([answer.status, answer.problem.type]).toEqual([503, "/docs/errors#bus-unavailable"]);
        expect(Number(answer.headers.get("retry-after"))).toBeGreaterThan(0);
      }
    } finally {
      await system().proxy.heal();
    }
    await system().ready();
    expect((await admin(`GET /${id}`)).body.data).not.toHaveProperty("replays");
    expect((await replay(id)).body.data.replays).toBe(1);
  });

  test("a send is not replayed before dispatch has reported its state", async () => {
    await work();
    const send = sendOf(project().id);
    const [opens, sends, rest] = [await deadOpens(), await deadSend(send), await deadOpens()];
    system().peers.away("dispatch");
    expect((await replay(sends)).status).toBe(503);
    expect((await replayAll([sends, opens])).status).toBe(503);
    // Reports the replays that finished, and tries no more.
    const { status, body } = await replayAll([opens, sends, rest]);
    expect(status).toBe(200);
    expect(statuses(body.data.replays)).toEqual([
      [opens, "replayed"],
      [sends, "failed"],
      [rest, "failed"],
    ]);
    expect(body.data.replays[2].detail).toBe("not tried");
    system().peers.back();
    expect(statuses((await replayAll([sends, rest])).body.data.replays)).toEqual([
      [sends, "replayed"],
      [rest, "replayed"],
    ]);
    await eventually(() => expect(handled).toEqual([send]));
    await eventually(() => expect(opened).toHaveLength(2));
  });
});
