import { newDeviceId, newNotificationId } from "@herald/contracts";
import { parseOpenKeys } from "@herald/kit";
import { createOpenTokens } from "@herald/payload";
import { eventually, expectStatus, type HttpAnswer, operateBroker, request } from "@herald/testing";
import { afterAll, beforeAll, expect, test } from "vitest";
import { inParallel } from "../harness/in-parallel.ts";
import type { Project } from "../harness/project.ts";
import { seed } from "../harness/seed.ts";
import { payloadOf } from "../harness/simulators.ts";
import { logOnFailure, type System, startSystem } from "../harness/system.ts";
import { show } from "./figures.ts";
import { scale } from "./scale.ts";
import { newToken } from "./world.ts";

/** How much of the shared queues one project or one kind of work can fill. */
let system: System;
let quiet: Project;
const audience = 1_000;
/** The prefix of push tokens with a slow provider. */
const slow = "5105";
const sends = scale(5_000, 2_000);
beforeAll(async () => {
  system = await startSystem();
  quiet = await system.project("Quiet");
  await seed(system, quiet, audience, { topics: ["news"] });
});
afterAll(() => system?.stop());
logOnFailure(() => system);

/** Signs open tokens like dispatch, each for another device. */
function signerOf({ id }: Project) {
  const keys = parseOpenKeys(system.environmentOf("gateway").HERALD_OPEN_KEYS ?? "");
  if ("problem" in keys) throw new Error(keys.problem);
  const tokens = createOpenTokens(keys.keys);
  const notificationId = newNotificationId(new Date());
  const sign = tokens.signer({ projectId: id, notificationId, platform: "ios" }, new Date());
  return (): Promise<HttpAnswer> =>
    request(system.gateway, `PUT /api/v1/notifications/${notificationId}/open`, {
      body: { project_id: id, token: sign(newDeviceId(new Date())) },
    });
}

const pushesOf = async (id: string): Promise<number> =>
  (await system.simulators.pushes()).filter((push) => payloadOf(push).notification_id === id).length;

test("unrecorded opens fill only their own stream, and sends continue", async ({ task }) => {
  const noisy = await system.project("Opens");
  const open = signerOf(noisy);
  const hands = await operateBroker(system.broker);
  const analytics = system.services.analytics.pid();
  process.kill(analytics, "SIGSTOP");
  // Space for some hundred groups; production has space for millions of opens.
  const before = await hands.limit("PUSH_OPENS", 65_536);
  try {
    const answers: HttpAnswer[] = [];
    await eventually(
      async () => {
        answers.push(...(await Promise.all(Array.from({ length: 200 }, open))));
        expect(answers.filter(({ status }) => status === 503).length).toBeGreaterThan(100);
      },
      { timeoutMs: 60_000 },
    );
    const statuses = new Set(answers.map(({ status }) => status));
    const refused = answers.filter(({ status }) => status === 503);
    const sends = [];
    for (let n = 0; n < 10; n++)
      sends.push(
        await quiet.call("POST /notifications", { body: { notification: { title: "On", targets: ["news"] } } }),
      );
    show(task, {
      "opens sent": answers.length,
      "opens refused": refused.length,
      "sends accepted meanwhile": `${sends.filter(({ status }) => status === 202).length} of ${sends.length}`,
    });
    expect([...statuses].sort()).toEqual([204, 503]);
    for (const { headers } of refused) expect(headers.get("retry-after")).toMatch(/^\d+$/);
    for (const answer of sends) {
      expectStatus(answer, 202);
      await eventually(async () => expect(await pushesOf(answer.body.data.id)).toBe(audience), { timeoutMs: 60_000 });
    }
  } finally {
    await hands.limit("PUSH_OPENS", before);
    process.kill(analytics, "SIGCONT");
    await hands.close();
  }
  await eventually(async () => expectStatus(await open(), 204), { timeoutMs: 30_000 });
});

test("thousands of topic sends do not delay another project's expansion", async ({ task }) => {
  const noisy = await system.project("Broadcaster");
  await seed(system, noisy, 2_000, { topics: ["crowd"], prefix: slow });
  // So that its delivery queues stay full.
  await system.simulators.script([{ tokenPrefix: slow, delayMs: 2_000 }]);
  const noise = { title: "To everyone", targets: ["crowd"] };
  const hands = await operateBroker(system.broker);
  try {
    const answers = await inParallel(Array.from({ length: sends }), 64, () =>
      noisy.call("POST /notifications", { body: { notification: noise } }),
    );
    const from = performance.now();
    const left = await hands.left("PUSH_CMD", "dispatch-start");
    const { id } = await quiet.send({ title: "News", targets: ["news"] });
    await eventually(async () => expect(await pushesOf(id)).toBe(audience), { timeoutMs: 120_000 });
    const tookMs = Math.round(performance.now() - from);
    const held = await hands.unsettled("PUSH_CMD", "registry-expand");
    show(task, {
      "sends of one project accepted": answers.filter(({ status }) => status === 202).length,
      "not stored when another's came": left,
      "another's, to 1,000 devices, ms": tookMs,
      "expansions held by registry": held,
    });
    // The noisy project's 32, and one that ends in this moment; the consumer holds 20,000 at most.
    expect(held).toBeLessThanOrEqual(64);
    expectStatus(await quiet.call("GET /devices?page=1"), 200);
  } finally {
    await hands.close();
  }
});

test("templates and activities of two projects leave room for a third", async ({ task }) => {
  const hands = await operateBroker(system.broker);
  const room = 8 * 1_048_576;
  const part = 500_000;
  const withToken = async (project: Project) => {
    const { token } = await newToken(system, project, ["templates"]);
    const publish = async (name: string, texts: object): Promise<HttpAnswer> => {
      const template = { title: name, data: texts };
      expectStatus(await project.call(`PUT /templates/${name}`, { token, body: { template } }), 200, 201);
      return project.call(`POST /templates/${name}/publish`, { token });
    };
    const begin = (id: string, targets: readonly string[]): Promise<HttpAnswer> =>
      project.call(`PUT /activities/${id}`, {
        body: {
          activity: { attributes_type: "Order", attributes: {}, content_state: {}, start: false, targets },
        },
      });
    return { publish, begin };
  };
  const large = Object.fromEntries(Array.from({ length: 7 }, (_, at) => [`part${at}`, "x".repeat(4_000)]));
  const many = Array.from({ length: 100 }, (_, at) => `user:${"u".repeat(126)}${String(at).padStart(2, "0")}`);
  const greedy = [await withToken(await system.project("Greedy")), await withToken(await system.project("Greedier"))];
  const third = await withToken(await system.project("Third"));
  /** Lets the two write in turn until both are refused. Resolves to how often they were not, and the refusals. */
  const fill = async (bucket: string, write: (by: (typeof greedy)[number], n: number) => Promise<HttpAnswer>) => {
    // Others use most of the room.
    const before = await hands.limit(`KV_${bucket}`, room);
    for (let n = 0; n * part < room * 0.65; n++)
      await hands.publish(`$KV.${bucket}.others.n${n}`, JSON.stringify("x".repeat(part)));
    let written = 0;
    let refusals: HttpAnswer[] = [];
    for (let n = 0; refusals.length < greedy.length && n < 200; n++) {
      const answers = [];
      for (const by of greedy) answers.push(await write(by, n));
      refusals = answers.filter(({ status }) => status !== 200 && status !== 202);
      written += answers.length - refusals.length;
    }
    return { written, refusals, end: () => hands.limit(`KV_${bucket}`, before) };
  };
  try {
    const templates = await fill("push_content", ({ publish }, n) => publish(`large-${n}`, large));
    const published = await third.publish("small", {});
    const activities = await fill("push_activities", ({ begin }, n) => begin(`large-${n}`, many));
    const begun = await third.begin("small", ["user:one"]);
    show(task, {
      "templates published": templates.written,
      refused: templates.refusals.map(({ status }) => status).join(" "),
      "a third's": published.status,
      "activities begun": activities.written,
      "refused then": activities.refusals.map(({ status }) => status).join(" "),
      "a third's then": begun.status,
    });
    for (const { status, text } of templates.refusals) {
      expect(status).toBe(409);
      expect(text).toContain(`at most ${room / 1_024} are accepted`);
    }
    for (const { status, text } of activities.refusals) {
      expect(status).toBe(429);
      expect(text).toContain(`may have ${room / 1_024} bytes of activities`);
    }
    expect([templates.refusals.length, activities.refusals.length]).toEqual([2, 2]);
    expect([published.status, begun.status]).toEqual([200, 202]);
    await templates.end();
    await activities.end();
  } finally {
    await hands.close();
  }
});
