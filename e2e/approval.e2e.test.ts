import { NotificationApprovedV1, NotificationProposedV1, NotificationRejectedV1 } from "@herald/contracts";
import { expectStatus, type Request, request } from "@herald/testing";
import { afterAll, beforeAll, expect, test } from "vitest";
import { eventsOf } from "./harness/compare-events.ts";
import { type Content, type Project, projectClient } from "./harness/project.ts";
import { seed } from "./harness/seed.ts";
import { payloadOf } from "./harness/simulators.ts";
import { logOnFailure, type System, startSystem } from "./harness/system.ts";

const limit = 1_000;
const inLargeTopic = 1_100;

let system: System;
let project: Project;
type Operator = { readonly id: string; readonly token: string };
/** Sends, and creates tokens, and may approve what others send. */
let ann: Operator;
/** Reads alone, and may approve. */
let bob: Operator;
/** Sends, and approves nothing. */
let cid: Operator;
beforeAll(async () => {
  system = await startSystem();
  project = await system.project("Approved");
  const operator = (name: string, role: string, approve?: true): Promise<Operator> =>
    system.operator({ name, role: "member", projects: [{ id: project.id, role, ...(approve && { approve }) }] });
  [ann, bob, cid] = [
    await operator("Ann", "admin", true),
    await operator("Bob", "viewer", true),
    await operator("Cid", "operator"),
  ];
  await seed(system, project, inLargeTopic, { topics: ["large"] });
  await seed(system, project, 100, { topics: ["small"] });
  await change(ann, { devices: limit }, 200);
});
afterAll(() => system?.stop());
logOnFailure(() => system);

const adminAs = ({ token }: Operator, route: string, options: Request = {}) =>
  system.admin(route, { token, ...options });
const change = async (who: Operator, approval: object | null, status: number) =>
  expectStatus(await adminAs(who, `PATCH /projects/${project.id}`, { body: { project: { approval } } }), status);
const decide = (who: Operator, id: string, verb: "approve" | "reject", body: object = {}) =>
  adminAs(who, `POST /projects/${project.id}/notifications/${id}/${verb}`, { body });
const pushesOf = async (id: string) =>
  (await system.simulators.pushes()).filter((push) => payloadOf(push).notification_id === id);
const large: Content = { title: "To many", targets: ["topic:large"] };

test("a send to many waits until a second person approves it; one to fewer does not", async () => {
  const small = await project.send({ title: "To few", targets: ["topic:small"] });
  const { id, status, approval } = await project.send(large);
  expect([small.status, small.approval, status]).toEqual(["accepted", undefined, "proposed"]);
  expect(approval).toMatchObject({ status: "proposed", limit, sender: { id: expect.stringMatching(/^tok_/) } });
  expect(Math.abs((approval?.devices ?? 0) - inLargeTopic)).toBeLessThan(100);
  expect((await project.final(small.id)).counts.accepted).toBe(100);
  const listed = expectStatus(await project.call("GET /notifications?status=proposed"), 200).body.data;
  expect(listed.map((one: { id: string }) => one.id)).toContain(id);
  expect(await pushesOf(id)).toEqual([]);

  expectStatus(await decide(cid, id, "approve"), 403);
  expectStatus(await system.admin(`POST /projects/${project.id}/notifications/${id}/approve`), 403);
  expectStatus(await project.call(`PATCH /notifications/${id}`, { body: { notification: { ttl: 60 } } }), 409);
  const answer = expectStatus(await decide(bob, id, "approve", { reason: "checked" }), 200);
  const by = { id: bob.id, name: "Bob" };
  expect(answer.body.data.approval).toMatchObject({ status: "approved", by, reason: "checked" });
  expect(await project.final(id)).toMatchObject({ status: "completed", counts: { accepted: inLargeTopic } });
  expect(await eventsOf(system, project, NotificationProposedV1)).toMatchObject([{ notification_id: id, limit }]);
  expect(await eventsOf(system, project, NotificationApprovedV1)).toMatchObject([{ notification_id: id, by }]);
});

test("neither its sender nor the one who created the sender's token approves it", async () => {
  const body = { token: { name: "Ann's", scopes: ["send", "read"] } };
  const { token } = expectStatus(await adminAs(ann, `POST /projects/${project.id}/tokens`, { body }), 201).body;
  const own = projectClient(system.gateway, { id: project.id, token });
  const sent = await own.send(large);
  const as = { token: ann.token, headers: { "herald-project": project.id } };
  const posted = await request(system.gateway, "POST /api/v1/notifications", {
    ...as,
    body: { notification: large },
  });
  const direct = expectStatus(posted, 202).body.data;
  expect(direct.approval.sender).toEqual({ id: ann.id, name: "Ann" });
  for (const { id } of [sent, direct]) {
    const refused = expectStatus(await decide(ann, id, "approve"), 403);
    expect(refused.body.errors).toEqual([
      "you sent it, or created the token that did: another person has to approve it",
    ]);
    const rejected = expectStatus(await decide(ann, id, "reject", { reason: "not now" }), 200).body.data;
    expect(rejected).toMatchObject({ status: "cancelled", approval: { status: "rejected", reason: "not now" } });
    expectStatus(await decide(bob, id, "approve"), 409);
    expect(await pushesOf(id)).toEqual([]);
  }
  expect(await eventsOf(system, project, NotificationRejectedV1)).toHaveLength(2);
});

test("a batch, a repeat, a list of recipients and a rollout are proposed as well; a Live Activity for as many is refused", async () => {
  const batch = { notifications: [large, { title: "To few", targets: ["topic:small"] }] };
  const { data } = expectStatus(await project.call("POST /notifications/batch", { body: batch }), 202).body;
  expect(await project.notification(data[0].id)).toMatchObject({ status: "proposed" });
  expect((await project.final(data[1].id)).status).toBe("completed");

  const headers = { "idempotency-key": "once" };
  const [first, again] = [await project.send(large, headers), await project.send(large, headers)];
  expect(again).toEqual(first);

  const recipients = Array.from({ length: limit + 1 }, (_, at) => ({ target: `user:u${at}` }));
  const many = await project.send({ title: "Hi", recipients: recipients as Content["recipients"] } as Content);
  expect([many.status, many.approval?.devices]).toEqual(["proposed", limit + 1]);

  const rolled = await project.send({ ...large, rollout: { canary: { share: 0.5, wait: "1m" } } });
  expect(rolled).toMatchObject({ status: "proposed" });
  const { status, rollout } = expectStatus(await decide(bob, rolled.id, "approve"), 200).body.data;
  expect([status, rollout.canary.share]).toEqual([expect.not.stringMatching("proposed"), 0.5]);

  const activity = {
    ...{ targets: ["topic:large"], attributes_type: "Ride", attributes: {}, content_state: { eta: 5 } },
    ends_at: new Date(Date.now() + 3_600_000).toISOString(),
    ...{ alert: { title: "Ride", body: "On its way" }, kind: "rides" },
  };
  const refused = await project.call("PUT /activities/ride-1", { body: { activity } });
  expect([refused.status, refused.body.type], refused.text).toEqual([
    409,
    expect.stringContaining("approval-required"),
  ]);
});

test("an upload is sent at once with few recipients, and proposed when it is complete with many", async () => {
  const { device } = await project.register({ user_id: "few" } as Parameters<Project["register"]>[0]);
  const open = () =>
    project.send({ title: "{{ n }}", variables: { n: "" }, recipients: { upload: "user" } } as unknown as Content);
  const upload = async (id: string, users: readonly string[]) => {
    const lines = users.map((user, n) => JSON.stringify({ target: `user:${user}`, variables: { n: `${n}` } }));
    const answer = await fetch(`${system.gateway}/api/v1/notifications/${id}/recipients`, {
      ...{ method: "PUT", body: `${lines.join("\n")}\n` },
      headers: { authorization: `Bearer ${project.token}`, "content-type": "application/x-ndjson" },
    });
    expect(answer.status, await answer.clone().text()).toBe(200);
  };
  const [few, many] = [await open(), await open()];
  expect([few.status, many.status]).toEqual(["proposed", "proposed"]);
  await upload(few.id, ["few"]);
  expect((await project.final(few.id)).counts).toMatchObject({ devices: 1, accepted: 1 });
  expectStatus(await decide(bob, many.id, "approve"), 409);
  await upload(many.id, ["few", ...Array.from({ length: 30_000 }, (_, n) => `u${n}`)]);
  expect((await project.notification(many.id)).approval).toMatchObject({ status: "proposed", devices: 30_001 });
  expectStatus(await decide(bob, many.id, "approve"), 200);
  expect((await project.final(many.id)).counts).toMatchObject({ devices: 1, accepted: 1 });
  expect(device.id).toBe((await project.deliveries(many.id))[0]?.device_id);
});

test("a send is proposed while registry cannot say how many devices it has", async () => {
  await system.services.registry.kill();
  const { id, status, approval } = await project.send(large);
  expect([status, approval?.devices]).toEqual(["proposed", undefined]);
  await system.services.registry.ready();
  const asked = expectStatus(await decide(bob, id, "approve"), 409);
  expect(asked.body.type).toContain("audience-grew");
  expectStatus(await decide(bob, id, "approve"), 200);
  expect((await project.final(id)).counts.accepted).toBe(inLargeTopic);
});

test("only an admin of the installation raises the number or removes it", async () => {
  for (const approval of [{ devices: limit + 1 }, null]) {
    const { body } = await change(ann, approval, 403);
    expect(body.errors[0]).toMatch(/^project\.approval: sends to more than 1000 devices need approval/);
  }
  await change(ann, { devices: limit }, 200);
  const body = { project: { approval: null } };
  expect(expectStatus(await system.admin(`PATCH /projects/${project.id}`, { body }), 200).body.data).not.toHaveProperty(
    "approval",
  );
  await change(ann, { devices: limit }, 200);
});
