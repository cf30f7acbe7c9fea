import { Device, type Scope } from "@herald/contracts";
import { eventually, expectStatus, operateBroker } from "@herald/testing";
import type { World as GatewayWorld } from "../../services/gateway/test/route-case.ts";
import { newActivity } from "../../services/gateway/test/route-table.ts";
import type { Project } from "../harness/project.ts";
import { payloadOf } from "../harness/simulators.ts";
import type { System } from "../harness/system.ts";

/** One of everything that a project can have, as the table of routes names it. */
export type World = Omit<GatewayWorld, "project"> & {
  readonly project: Project;
  /** The title of its notification and what is in its device's metadata. */
  readonly content: string;
};

export async function newToken(
  system: System,
  { id }: Pick<Project, "id">,
  scopes: readonly Scope[],
  expiresAt?: Date,
): Promise<{ id: string; token: string }> {
  const token = { name: "hostile", scopes, ...(expiresAt && { expires_at: expiresAt.toISOString() }) };
  const { body } = expectStatus(await system.admin(`POST /projects/${id}/tokens`, { body: { token } }), 201);
  return { id: body.data.id, token: body.token };
}

/** A project of the running system with one of everything in it. */
export async function newWorld(system: System, name: string): Promise<World> {
  const project = await system.project(name, ["apns", "fcm", "webpush"]);
  const content = `Only ${name} may read this`;
  const user = `user-of-${name}`;
  const { device, credential } = await project.register({ metadata: { name: content }, user_id: user });
  const topic = expectStatus(await project.call("POST /topics", { body: { topic: { name: `news-of-${name}` } } }), 201);
  const { id } = await project.send({ title: content, targets: [device.id] });
  const notification = await project.final(id);
  const [push] = await system.simulators.pushes({ token: device.token });
  if (!push) throw new Error("the push did not arrive");
  const staged = await system.admin(`POST /projects/${project.id}/providers/webpush/keys`, { body: {} });
  const identityKey = await system.admin(`POST /projects/${project.id}/identity-keys`, { body: {} });
  const operator = await system.operator({ name, role: "viewer" });
  const webhook = { url: "http://127.0.0.1:9/closed", events: ["io.herald.notification.opened.v1"] };
  const hook = expectStatus(await project.call("POST /webhooks", { body: { webhook } }), 201).body.data.id;
  const started = await project.call("POST /imports", { body: { import: { format: "herald" } } });
  const recipients = await project.send({
    title: "Hi",
    recipients: [{ target: `device:${device.id}` }],
  } as unknown as Parameters<typeof project.send>[0]);
  const kind = { title: "News", on_by_default: true, critical: false };
  expectStatus(await system.admin(`PUT /projects/${project.id}/kinds/news`, { body: { kind } }), 201);
  const ping = expectStatus(await project.call(`POST /webhooks/${hook}/ping`), 202);
  const template = await newTemplate(system, project);
  const activity = `order-of-${name}`;
  expectStatus(await project.call(`PUT /activities/${activity}`, { body: newActivity() }), 202);
  return {
    project,
    content,
    tokenId: (await newToken(system, project, ["read"])).id,
    device: Device.parse(device),
    user,
    credential,
    importId: expectStatus(started, 201).body.data.id,
    recipientsId: recipients.id,
    topic: topic.body.data,
    template,
    notification,
    activity,
    openToken: payloadOf(push).token,
    deadLetter: await newDeadLetter(system, project),
    webhook: hook,
    webhookMessage: ping.body.data.id,
    operator: operator.id,
    identityKey: expectStatus(identityKey, 201).body.data.id,
    nextKey: expectStatus(staged, 200, 201).body.data.id,
  };
}

async function newTemplate(system: System, project: Project): Promise<string> {
  const name = `welcome-${project.id.slice(-8)}`;
  const { token } = await newToken(system, project, ["templates"]);
  const variables = { name: { type: "string", fallback: "friend" } };
  const body = { template: { title: "Hi {{ name }}", variables } };
  expectStatus(await project.call(`PUT /templates/${name}`, { token, body }), 201);
  expectStatus(await project.call(`POST /templates/${name}/publish`, { token }), 200);
  return name;
}

async function newDeadLetter(system: System, { id }: Project): Promise<string> {
  const hands = await operateBroker(system.broker);
  try {
    await hands.publish(`push.cmd.v1.dispatch.send.${id}.ntf_0000000000000000000000000`, "not JSON");
  } finally {
    await hands.close();
  }
  return eventually(async () => {
    const { body } = expectStatus(await system.admin("GET /dead-letters?per_page=100"), 200);
    const letter = body.data.find((one: { subject: string }) => one.subject.includes(id));
    if (!letter) throw new Error("it is not in the dead letters yet");
    return letter.id;
  });
}
