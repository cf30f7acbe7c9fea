import { eventually, expectStatus, request } from "@herald/testing";
import { expect } from "vitest";
import { inParallel } from "../harness/in-parallel.ts";
import { payloadOf } from "../harness/simulators.ts";
import { logOnFailure, type System } from "../harness/system.ts";
import { show } from "./figures.ts";
import { callsOf, credentialOf, type RouteCall } from "./route-calls.ts";
import { scale } from "./scale.ts";
import { test } from "./shared-system.ts";
import { restingSnapshotOf } from "./snapshot.ts";
import { newToken, newWorld, type World } from "./world.ts";

let system: System;
let attacked: World;
let attacker: World;
test.beforeAll(async ({ system: shared }) => {
  system = shared;
  attacked = await newWorld(system, "Attacked");
  attacker = await newWorld(system, "Attacker");
});
logOnFailure(() => system);

/** A name for the caller, and the token behind `Bearer`; undefined sends no credential. */
type Credential = readonly [name: string, token: string | undefined];

async function credentials(): Promise<Credential[]> {
  const { project } = attacker;
  const scopes = ["send", "read", "devices"] as const;
  const subsets = Array.from({ length: 8 }, (_, bits) => scopes.filter((_, index) => (bits >> index) & 1));
  const named: Credential[] = [];
  for (const some of subsets.filter(({ length }) => length > 0 && length <= scale(3, 1)))
    named.push([some.join("+"), (await newToken(system, project, some)).token]);
  // Later than its creation, on a busy machine too.
  const expiresAt = new Date(Date.now() + 5_000);
  const expired = await newToken(system, attacked.project, scopes, expiresAt);
  const revoked = await newToken(system, attacked.project, scopes);
  expectStatus(await system.admin(`DELETE /projects/${attacked.project.id}/tokens/${revoked.id}`), 204);
  await eventually(async () => {
    for (const { token } of [expired, revoked])
      expectStatus(await request(system.gateway, "GET /api/v1/devices", { token }), 401);
  });
  const { device: neighbour, credential } = await attacked.project.register();
  expect(neighbour.id).not.toBe(attacked.device.id);
  return [
    ...named,
    ["everything", project.token],
    ["no token", undefined],
    ["an expired token of the project", expired.token],
    ["a revoked token of the project", revoked.token],
    [
      "a token with its last letter changed",
      attacked.project.token.replace(/.$/, (last) => (last === "A" ? "B" : "A")),
    ],
    ["garbage", "hpt_garbage"],
    ["a device of another project", attacker.credential],
    ["another device of the project", credential],
    ["an open token", attacked.openToken],
    ["another project's open token", attacker.openToken],
  ];
}

/** Values of the attacked project: no answer may contain them, except values from the request. */
const ownOf = ({
  content,
  project,
  device,
  notification,
  topic,
  tokenId,
  webhook,
  webhookMessage,
  nextKey,
}: World) => ({
  project: project.id,
  device: device.id,
  "push token": device.token,
  notification: notification.id,
  topic: topic.id,
  token: tokenId,
  webhook,
  "webhook message": webhookMessage,
  "VAPID key": nextKey,
  content,
});

/** Some routes name nothing of a project: a caller with a valid credential acts in its own project. */
const ownAnswers = [200, 201, 202, 204];
const refused = [401, 403, 404];
/** A stream has no end, and no identity provider is set. */
const otherwiseAnswered = ["followEvents", "beginSignIn", "finishSignIn"];
/** Further refusals: a device credential already names the device, and the caller's own project may have the name already. */
const alsoRefused: Record<string, number> = { changeMetadata: 422, putMetadata: 422, createTopic: 409 };

test("every route with foreign ids and every credential: 401, 403 or 404, nothing changed", async ({ task }) => {
  const all = await credentials();
  const before = await settled();
  const own = Object.entries(ownOf(attacked));
  const calls = callsOf(attacked);
  const statuses: Record<string, number> = {};
  const wrong: string[] = [];

  const knock = async ({ route, method, path, body, foreign }: RouteCall, [name, token]: Credential) => {
    const sent = { token, ...(body === undefined ? {} : { body }) };
    const answer = await request(system.gateway, `${method} ${path}`, sent);
    statuses[answer.status] = (statuses[answer.status] ?? 0) + 1;
    const mayBeOwn = foreign !== 404 && name !== "no token" && !name.includes("garbage");
    const well = refused.includes(answer.status) || answer.status === alsoRefused[route.operationId];
    if (!well && !(mayBeOwn && ownAnswers.includes(answer.status)))
      wrong.push(`${route.operationId} with ${name}: ${answer.status} ${answer.text.slice(0, 200)}`);
    const said = `${path} ${JSON.stringify(body ?? "")} ${token ?? ""}`;
    for (const [what, secret] of own)
      if (answer.text.includes(secret) && !said.includes(secret))
        wrong.push(`${route.operationId} with ${name} shows the ${what}: ${answer.text.slice(0, 200)}`);
  };

  // Calls with only the project's id and an own push token are no attack, so routes for clients alone are left out.
  const guarded = calls.filter(({ route }) => !route.access.by.every((kind) => kind === "client"));
  const tried = guarded.flatMap((call) =>
    all.filter((credential) => !harmless(call, credential)).map((credential) => [call, credential] as const),
  );
  await inParallel(tried, 8, ([call, credential]) => knock(call, credential));
  expect(wrong).toEqual([]);
  expect(await settled()).toEqual(before);

  // Opens and receipts with the token of another device, of this project and of another.
  const reports = ["open", "received", "dismissed"].map(
    (verb) => `PUT /api/v1/notifications/${attacked.notification.id}/${verb}`,
  );
  for (const body of [
    { project_id: attacked.project.id, token: attacker.openToken },
    { project_id: attacker.project.id, token: attacked.openToken },
    { project_id: attacker.project.id, token: attacker.openToken },
  ])
    for (const report of reports)
      expect((await request(system.gateway, report, { body })).status).toBeGreaterThanOrEqual(400);
  expect(await settled()).toEqual(before);

  for (const { route, method, path } of calls.filter(
    ({ method, route }) => method === "GET" && !otherwiseAnswered.includes(route.operationId),
  ))
    expectStatus(
      await request(system.gateway, `${method} ${path}`, { token: credentialOf(route, system.adminToken, attacked) }),
      // A project's first token has every scope but this one.
      route.access.scopes?.includes("export") ? 403 : 200,
    );
  const { id } = await attacked.project.send({ title: "Still ours", targets: [attacked.device.id] });
  await attacked.project.final(id);
  const pushes = await system.simulators.pushes({ token: attacked.device.token });
  expect(pushes.map((one) => payloadOf(one).notification_id)).toContain(id);
  const answered = Object.entries(statuses).map(([status, count]) => `${count} × ${status}`);
  show(task, {
    routes: guarded.length,
    credentials: all.length,
    requests: tried.length,
    answered: answered.join(", "),
  });
});

/** Clients without a secret may register with their own push token: these routes exist for that. */
const harmless = ({ route }: RouteCall, [name]: Credential): boolean =>
  name === "no token" && route.access.by.includes("client");

/** The data of the attacked project in the databases, after all work is done. */
const settled = () => restingSnapshotOf(system, attacked.project.id);
