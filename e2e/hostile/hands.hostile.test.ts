import { buckets, streams } from "@herald/contracts";
import { eventually, expectStatus, readStream } from "@herald/testing";
import { expect } from "vitest";
import { apnsToken, type Content, type Project } from "../harness/project.ts";
import { logOnFailure, type System } from "../harness/system.ts";
import { nowSeconds } from "../harness/user-tokens.ts";
import { show } from "./figures.ts";
import { scale } from "./scale.ts";
import { test } from "./shared-system.ts";
import { snapshotOf } from "./snapshot.ts";
import { createUserApps, tokenOf, type UserApps, userOf } from "./user-apps.ts";

let system: System;
let users: UserApps;
test.beforeAll(async ({ system: shared }) => {
  system = shared;
  users = createUserApps(system);
});
logOnFailure(() => system);

test("a phone changes hands: log-outs, replayed tokens, concurrent logins", async ({ task }) => {
  const project = await users.newProject("Hands");
  const { id, token, credential } = await users.phone(project);
  const at = nowSeconds();
  const login = (user: string, iat: number) =>
    users.own(`PATCH /devices/${id}`, credential, {
      device: { user_token: tokenOf(project, user, { iat, exp: at + 600 }) },
    });
  expectStatus(await login("ann", at - 50), 200);
  expectStatus(await login("ann", at - 50), 200); // a repeat changes nothing
  expectStatus(await login("ann", at - 60), 200); // nor does an earlier token of the same user
  expectStatus(await login("bob", at - 50), 409);
  expectStatus(await login("bob", at - 51), 409);
  expect(await userOf(project, id)).toBe("ann");
  expectStatus(await login("bob", at - 49), 200); // a login as another user moves the device
  expect(await users.reached(project, ["user:ann"])).toEqual([]);
  expectStatus(await users.own(`DELETE /devices/${id}/user`, credential), 204);
  expectStatus(await users.own(`DELETE /devices/${id}/user`, credential), 204);
  for (const [user, iat] of [
    ["bob", at - 49],
    ["ann", at - 50],
  ] as const)
    expectStatus(await login(user, iat), 409);
  expectStatus(
    await users.identify(project, { identifier: token, user_token: tokenOf(project, "bob", { iat: at - 49 }) }),
    409,
  );
  expect(await userOf(project, id)).toBeNull();
  // Other devices cannot log it out or in.
  const other = await users.phone(project);
  expectStatus(await users.own(`DELETE /devices/${id}/user`, other.credential), 403);
  expectStatus(
    await users.own(`PATCH /devices/${id}`, other.credential, { device: { user_token: tokenOf(project, "x") } }),
    403,
  );

  // Concurrent logins and log-outs end in one of their states, and the newest token wins.
  const [rounds, atOnce] = [3, scale(40, 16)];
  for (let round = 0; round < rounds; round++) {
    const all = Array.from({ length: atOnce }, (_, n) =>
      n % 4 === 3
        ? users.own(`DELETE /devices/${id}/user`, credential)
        : login(`user-${n}`, at - 40 + round + n / atOnce),
    );
    for (const { status, text } of await Promise.all(all)) expect([200, 204, 409], text).toContain(status);
    const user = await userOf(project, id);
    expect(user === null || /^user-\d+$/.test(user)).toBe(true);
    const facets = (await devicesOf(project))
      .find(({ _id }) => _id === id)
      ?.facets.filter((one) => one.startsWith("u:"));
    expect(facets).toEqual(user === null ? [] : [`u:${user}`]);
  }
  // The project's token can assign a user too. A user without devices does not exist.
  expectStatus(await project.call(`PUT /users/carl/devices/${id}`), 200);
  expect(expectStatus(await project.call("GET /users/carl"), 200).body.data).toMatchObject({
    user_id: "carl",
    device_count: 1,
  });
  expectStatus(await project.call(`DELETE /users/ann/devices/${id}`), 404);
  expectStatus(await project.call(`DELETE /users/carl/devices/${id}`), 204);
  expectStatus(await project.call("GET /users/carl"), 404);
  for (const bad of ["u".repeat(129), "%2e%2e", "a%2Fb", "a%20b"])
    expectStatus(await project.call(`PUT /users/${bad}/devices/${id}`), 404, 405, 422);
  for (const bad of ["u".repeat(129), "..", "a/b", "", 7, {}])
    expectStatus(await project.call(`PATCH /devices/${id}`, { body: { device: { user_id: bad } } }), 422);
  for (const bad of [`user:${"u".repeat(129)}`, "user:..", "user:", "user:a/b"])
    expectStatus(
      await project.call("POST /notifications", { body: { notification: { title: "x", targets: [bad] } } }),
      422,
    );
  show(task, { "replays refused": 5, "logins and log-outs at once": rounds * atOnce });
});

const devicesOf = (project: Project) => {
  const { client, name } = system.registryDatabase;
  return client
    .db(name)
    .collection<{ _id: string; projectId: string; facets: string[] }>("devices")
    .find({ projectId: project.id })
    .toArray();
};

test("what waited for one user is not sent to the next", async ({ task }) => {
  const project = await users.newProject("Waited");
  const moving = await users.phone(project, "ann");
  const staying = await users.phone(project, "ann");
  // Until the phone has changed hands: the retry comes at a random time, which may be half a second.
  await system.simulators.script(
    [moving, staying].map(({ token }) => {
      return { provider: "apns", tokenPrefix: token.slice(0, 12), status: 500, reason: "InternalServerError" };
    }),
  );
  const sent = await project.send({ title: "Ann's balance", targets: ["user:ann"] });
  const waits = async () => {
    const rows = await project.deliveries(sent.id);
    if (rows.length < 2 || !rows.every(({ status, attempts }) => status === "pending" && attempts > 0))
      throw new Error(JSON.stringify(rows));
  };
  await eventually(waits, { timeoutMs: 20_000 });
  const at = nowSeconds();
  const next = tokenOf(project, "bob", { iat: at + 5 });
  expectStatus(
    await users.own(`PATCH /devices/${moving.id}`, moving.credential, { device: { user_token: next } }),
    200,
  );
  await system.simulators.script([]);
  const scheduled = await project.send({
    title: "Ann's reminder",
    targets: ["user:ann"],
    send_at: new Date(Date.now() + 3_000).toISOString(),
  });
  const final = await project.final(sent.id, 60_000);
  expect(final.counts).toMatchObject({ devices: 2, accepted: 1, skipped: 1, pending: 0 });
  expect(final.skips).toEqual({ moved: 1 });
  const rows = await project.deliveries(sent.id);
  const pushes = await system.simulators.pushes({ token: moving.token });
  expect(rows.find(({ device_id }) => device_id === moving.id)).toMatchObject({
    status: "skipped",
    reason: "moved",
    user_id: "ann",
    attempts: pushes.length,
  });
  const trace = expectStatus(await project.call(`GET /notifications/${sent.id}/devices/${moving.id}`), 200).body.data;
  expect(trace).toMatchObject({ status: "skipped", user_id: "ann" });
  const explanation = trace.explanation.join(" ");
  expect(explanation).toContain("None of its targets names the device as it is now");
  expect(explanation).toContain("The device belonged to the user `ann` then");
  expect(explanation).toContain("given to another user");
  expect((await project.final(scheduled.id, 60_000)).counts).toMatchObject({ devices: 1, accepted: 1 });
  const later = await system.simulators.pushes({ token: moving.token });
  expect(later.map(({ status }) => status)).toEqual(pushes.map(() => 500));
  expect(await users.reached(project, ["user:bob"])).toEqual([moving.id]);

  // The provider refuses the credential, so a push to Bob may wait for days. Meanwhile the phone becomes Carl's.
  await system.simulators.script([{ provider: "apns", status: 403, reason: "InvalidProviderToken" }]);
  const paused = await project.send({ title: "Bob's balance", targets: ["user:bob"] });
  const stopped = async () =>
    expect(expectStatus(await system.admin(`GET /projects/${project.id}/providers/apns`), 200).body.data.status).toBe(
      "paused",
    );
  await eventually(stopped, { timeoutMs: 20_000 });
  expectStatus(await project.call(`PUT /users/carl/devices/${moving.id}`), 200);
  await system.simulators.script([]);
  await system.putProvider(project, "apns");
  expect(await project.final(paused.id, 60_000)).toMatchObject({
    counts: { devices: 1, skipped: 1 },
    skips: { moved: 1 },
  });
  expect((await system.simulators.pushes({ token: moving.token })).filter(({ status }) => status === 200)).toHaveLength(
    1,
  );
  show(task, { waited: "retried, scheduled, paused", "pushes of the former user's to the next": 0 });
});

test("erasure leaves no row, also during a broadcast and logins", async ({ task }) => {
  const project = await users.newProject("Erasure");
  const user = "erased-8412-user";
  const old = tokenOf(project, user);
  const mine = await users.phone(project, user);
  await project.register({ user_id: user, metadata: { name: "of-the-erased" } });
  const kept = await users.phone(project, "stays");
  await system.simulators.script([
    { provider: "apns", tokenPrefix: mine.token.slice(0, 12), status: 500, reason: "InternalServerError", times: 1 },
  ]);
  const alone = await project.send({ title: "secret-of-the-erased", targets: [`user:${user}`] });
  const both = await project.send({ title: "To both", targets: [`user:${user}`, "user:stays", "user:unknown"] });
  const broadcast = await project.send({ title: "To all", targets: ["all"] });
  const scheduled = await project.send({
    title: "later-secret-of-the-erased",
    targets: [`user:${user}`],
    send_at: new Date(Date.now() + 86_400_000).toISOString(),
  });
  const list = async () => expectStatus(await project.call(`GET /users/${user}/notifications`), 200).body.data.length;
  await eventually(async () => expect(await list()).toBe(3));
  const stats = async () => expectStatus(await project.call(`GET /stats?user=${user}`), 200).body.data ?? {};
  await stats();
  const logins = Array.from({ length: 10 }, () =>
    users.identify(project, { identifier: apnsToken(), user_token: old }),
  );
  const [erased] = await Promise.all([project.call(`DELETE /users/${user}`), ...logins]);
  expect(expectStatus(erased, 202).body.data).toMatchObject({ user_id: user, databases: "within an hour" });
  for (let n = 0; n < 3; n++) {
    const late = await users.identify(project, { identifier: apnsToken(), user_token: old });
    expect(expectStatus(late, 403).text).toContain("erased");
  }
  expectStatus(await project.call(`GET /users/${user}`), 404);
  await project.final(alone.id, 60_000);
  await project.final(both.id, 60_000);
  const all = await project.final(broadcast.id, 60_000);
  expect(all.counts.accepted + all.counts.skipped + all.counts.failed).toBe(all.counts.devices);
  const words = [user, "secret-of-the-erased", "of-the-erased"];
  let looked = 0;
  await eventually(
    async () => {
      const places = await snapshotOf(system);
      looked = Object.keys(places).length;
      const found = Object.entries(places).flatMap(([place, rows]) =>
        rows.filter((row) => words.some((word) => row.includes(word))).map((row) => `${place}: ${row.slice(0, 900)}`),
      );
      expect(found).toEqual([]);
    },
    { timeoutMs: 90_000 },
  );
  expect(await list()).toBe(0);
  const told = expectStatus(await project.call(`GET /notifications/${alone.id}`), 200).body.data;
  expect(told).toMatchObject({ title: "[erased]", targets: ["device:dev_00000000000000000000000000"] });
  expect(expectStatus(await project.call(`GET /notifications/${both.id}`), 200).body.data.title).toBe("To both");
  expectStatus(await project.call(`DELETE /notifications/${scheduled.id}`), 200);
  expect(await users.reached(project, ["user:stays"])).toEqual([kept.id]);
  expectStatus(await project.call(`DELETE /users/${user}`), 202); // again
  show(task, { collections: looked, "rows that name the user": 0, "logins beside it": logins.length });
});

/** The documentation says that these keep what they hold for 30 days. */
const keptStreams = new Set(["PUSH_EVENTS", "PUSH_DLQ"]);

test("erasure finds all that was sent to a user: texts, values and tokens", async ({ task }) => {
  const project = await users.newProject("Erasure of phones");
  const user = "gone-7731-user";
  const mine = await users.phone(project, user);
  const waiting = await users.phone(project, user);
  const inactive = await users.phone(project, user);
  const other = await users.phone(project, "stays");
  // A phone on which another user was logged in before.
  const handed = await users.phone(project, "former");
  const formers = [
    await project.send({ title: "To the former", targets: ["user:former"] }),
    await project.send({ title: "To the former", targets: [`device:${handed.id}`] }),
    await project.send({
      ...{ title: "{{ x }} to the former", variables: { x: "" } },
      recipients: [{ target: "user:former", variables: { x: "x" } }] as never,
    }),
  ];
  for (const { id } of formers) await project.final(id);
  const next = tokenOf(project, user, { iat: nowSeconds() + 5 });
  expectStatus(
    await users.own(`PATCH /devices/${handed.id}`, handed.credential, { device: { user_token: next } }),
    200,
  );
  const off = { body: { device: { status: "inactive" } } };
  expectStatus(await project.call(`PATCH /devices/${inactive.id}`, off), 200);
  await system.simulators.script([
    { provider: "apns", tokenPrefix: waiting.token.slice(0, 12), status: 500, reason: "InternalServerError" },
  ]);
  let words = 0;
  /** A text of its own for each send, so that what is found says where it comes from. */
  const word = (what: string) => `word-${words++}-of-the-gone-${what}`;
  const listed = (what: string, recipients: unknown) => ({
    ...{ title: `{{ x }} ${word(what)}`, variables: { x: word(`${what}-default`) } },
    recipients: recipients as never,
  });
  const line = (target: string, what: string) => ({ target, variables: { x: word(what) } });
  const tomorrow = new Date(Date.now() + 86_400_000).toISOString();
  const theirs: Content[] = [
    { title: word("device"), targets: [`device:${mine.id}`] },
    { title: word("id"), targets: [mine.id] },
    { title: word("token"), targets: [`token:${mine.token}`] },
    { title: word("waiting"), targets: [`device:${waiting.id}`] },
    { title: word("both"), targets: [`device:${mine.id}`, `user:${user}`] },
    { title: word("inactive"), targets: [`device:${inactive.id}`] },
    { title: word("inactive-token"), targets: [`token:${inactive.token}`] },
    { title: word("tomorrow"), targets: [`device:${mine.id}`], send_at: tomorrow },
    { title: word("tomorrow-token"), targets: [`token:${mine.token}`, `user:${user}`], send_at: tomorrow },
    listed("list", [line(`user:${user}`, "line")]),
    listed("list-device", [line(`device:${mine.id}`, "line"), line(`device:${waiting.id}`, "line")]),
    listed("list-token", [line(`token:${mine.token}`, "line")]),
    listed("list-inactive", [line(`token:${inactive.token}`, "line")]),
    { ...listed("list-tomorrow", [line(`user:${user}`, "line")]), send_at: tomorrow },
  ];
  const sent = await Promise.all(theirs.map((content) => project.send(content)));
  const mixed = await project.send({ title: "To both", targets: [`token:${mine.token}`, `device:${other.id}`] });
  const shared = listed("shared", [line(`user:${user}`, "line"), { target: "user:stays", variables: { x: "stays" } }]);
  const both = await project.send({ ...shared, title: "List of both {{ x }}", variables: { x: "" } });
  const upload = await project.send(listed("upload", { upload: "user" }) as Content);
  const uploadLine = { target: `user:${user}`, variables: { x: word("upload-line") } };
  const uploaded = await fetch(`${system.gateway}/api/v1/notifications/${upload.id}/recipients`, {
    ...{ method: "PUT", body: `${JSON.stringify(uploadLine)}\n` },
    headers: { authorization: `Bearer ${project.token}`, "content-type": "application/x-ndjson" },
  });
  expect(uploaded.status).toBe(200);
  const progress = () => project.call(`GET /notifications/${upload.id}/recipients`);
  await eventually(async () => expect((await progress()).body.data).toMatchObject({ processed: 1, complete: true }));
  await eventually(async () => expect(await project.notifications()).toHaveLength(theirs.length + formers.length + 3));
  await eventually(async () =>
    expect((await project.deliveries(`${sent[3]?.id}`)).map(({ attempts }) => attempts > 0)).toEqual([true]),
  );

  expectStatus(await project.call(`DELETE /users/${user}`), 202);
  const secrets = [user, "-of-the-gone-", mine.token, waiting.token, inactive.token];
  const isTheirs = (text: string) => secrets.some((secret) => text.includes(secret));
  let looked = 0;
  await eventually(
    async () => {
      const places: Record<string, readonly string[]> = { ...(await snapshotOf(system)) };
      for (const stream of [...Object.keys(streams), ...Object.keys(buckets).map((bucket) => `KV_${bucket}`)])
        if (!keptStreams.has(stream))
          places[stream] = (await readStream(system.broker, stream)).map((message) => JSON.stringify(message));
      looked = Object.keys(places).length;
      const found = Object.entries(places).flatMap(([place, rows]) =>
        rows.filter(isTheirs).map((row) => {
          const at = Math.min(...secrets.map((secret) => row.indexOf(secret)).filter((index) => index >= 0));
          return `${place}: ${row.slice(0, 90)} … ${row.slice(Math.max(0, at - 120), at + 120)}`;
        }),
      );
      expect(found).toEqual([]);
    },
    { timeoutMs: 60_000 },
  );
  // What was for others too stays, without them.
  await system.simulators.script([]);
  const rest = async (id: string) => expectStatus(await project.call(`GET /notifications/${id}`), 200).body.data;
  expect(await rest(mixed.id)).toMatchObject({
    ...{ title: "To both", targets: ["device:dev_00000000000000000000000000", `device:${other.id}`] },
  });
  expect(await rest(both.id)).toMatchObject({ title: "List of both {{ x }}" });
  for (const { id } of formers) expect((await rest(id)).title).toContain("the former");
  for (const { id } of [...sent, upload]) expect((await rest(id)).title, id).toBe("[erased]");
  expect(await users.reached(project, ["user:stays"])).toEqual([other.id]);
  show(task, {
    "sends to them": sent.length + 3,
    "sends to a device's former user": formers.length,
    "places searched": looked,
    "rows that hold something of theirs": 0,
  });
});
