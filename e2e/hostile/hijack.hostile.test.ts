import { type Answered, eventually, expectStatus, request } from "@herald/testing";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { apnsToken, type Project } from "../harness/project.ts";
import { type System, startSystem, tellOnFailure } from "../harness/system.ts";
import {
  claimsOf,
  eddsa,
  es256,
  hs256,
  newEd25519,
  newP256,
  newRsa,
  noneToken,
  nowSeconds,
  pemOf,
  rs256,
} from "../harness/user-tokens.ts";
import { show } from "./figures.ts";
import { snapshotOf } from "./snapshot.ts";

let system: System;
beforeAll(async () => {
  system = await startSystem({ env: { HERALD_GATEWAY_LIMIT_FAILURES: "1000000" } });
});
afterAll(() => system?.stop());
tellOnFailure(() => system);

type Named = Project & { readonly secret: string };

const keysOf = (project: Project) => `/projects/${project.id}/identity-keys`;

async function newProject(name: string): Promise<Named> {
  const project = await system.project(name);
  const { body } = expectStatus(await system.admin(`POST ${keysOf(project)}`, { body: {} }), 201);
  return { ...project, secret: body.secret };
}

const identify = (project: Project, body: object, token?: string): Promise<Answered> =>
  request(system.gateway, "PUT /api/v1/identification", {
    token,
    body: { project_id: project.id, platform: "ios", ...body },
  });

const tokenOf = (project: Named, user: string, change: Record<string, unknown> = {}) =>
  hs256(project.secret, { claims: claimsOf(project.id, user, change) });

/** A phone on which a user logs in, as an app does it. */
async function phone(project: Named, user?: string) {
  const token = apnsToken();
  const user_token = user === undefined ? undefined : tokenOf(project, user);
  const { body } = expectStatus(await identify(project, { identifier: token, user_token }), 201);
  return { id: body.data.id as string, token, credential: body.credential as string };
}

/** Which devices a notification was accepted for. */
async function reached(project: Project, targets: string[]): Promise<string[]> {
  const { id } = await project.send({ title: "For the victim alone", targets });
  await project.final(id);
  return (await project.deliveries(id)).map(({ device_id }) => device_id).sort();
}

const userOf = async (project: Project, id: string) =>
  expectStatus(await project.call(`GET /devices/${id}`), 200).body.data.user_id;

const own = (route: string, credential: string, body?: unknown) =>
  request(system.gateway, route.replace(" ", " /api/v1"), { token: credential, body });

test("a claim of a user by metadata or identifiers reaches the victim alone, and an old build still registers", async ({
  task,
}) => {
  const project = await newProject("Claim");
  const victim = await project.register({ metadata: { user_id: "victim", email: "v@example.com" }, user_id: "victim" });
  const spellings: Record<string, unknown>[] = [
    { user_id: "victim" },
    { email: "v@example.com" },
    { User_ID: "victim", USERID: "victim", userId: "victim" },
    { user_id: { of: "victim" }, phone: ["1"] },
  ];
  let ignored = 0;
  for (const data of spellings) {
    const body = { identifier: apnsToken(), metadata: { ...data, plan: "pro" }, identifiers: data };
    const answer = expectStatus(await identify(project, body), 201).body;
    const names = Object.keys(data).flatMap((key) => [`metadata.${key}`, `identifiers.${key}`]);
    expect(answer.ignored.toSorted()).toEqual(names.toSorted());
    ignored += names.length;
    const device = expectStatus(await own(`GET /devices/${answer.data.id}`, answer.credential), 200).body.data;
    expect(device).toMatchObject({ metadata: { plan: "pro" }, identifiers: {}, user_id: null });
    for (const attempt of [
      own("PATCH /metadata", answer.credential, { metadata: data }),
      own("PUT /metadata", answer.credential, { metadata: { user_id: null } }),
      own(`PATCH /devices/${answer.data.id}`, answer.credential, { device: { identifiers: data } }),
      request(system.gateway, "PATCH /api/v1/metadata", {
        body: { project_id: project.id, identifier: device.token, metadata: data },
      }),
    ]) {
      const refused = expectStatus(await attempt, 403);
      expect(refused.body.errors.join()).toContain("is protected");
    }
    const claim = await own(`PATCH /devices/${answer.data.id}`, answer.credential, { device: { user_id: "victim" } });
    expectStatus(claim, 403);
  }
  const plain = expectStatus(await identify(project, { identifier: apnsToken(), metadata: { plan: "pro" } }), 201);
  expect(plain.body.ignored).toBeUndefined();
  for (const target of ["metadata:user_id=victim", "metadata:email=v@example.com", "user:victim"])
    expect(await reached(project, [target]), target).toEqual([victim.device.id]);
  for (const target of [
    "identifiers:user_id=victim",
    "metadata:userId=victim",
    "condition:metadata.USERID == 'victim'",
  ])
    expect(await reached(project, [target]), target).toEqual([]);
  show(task, { spellings: spellings.length, "paths left out": ignored, "devices reached beside the victim's": 0 });
});

test("every forged, foreign, expired or misused user token is refused, and gives nobody a user", async ({ task }) => {
  const project = await newProject("Forged");
  const other = await newProject("Other");
  const victim = await phone(project, "victim");
  const keys = { es: newP256(), ed: newEd25519(), rsa: newRsa(2_048) };
  for (const { publicKey } of Object.values(keys))
    expectStatus(await system.admin(`POST ${keysOf(project)}`, { body: { public_key: pemOf(publicKey) } }), 201);
  const claims = claimsOf(project.id, "victim");
  const { sub: _s, ...noSub } = claims;
  const { aud: _a, ...noAud } = claims;
  const { iat: _i, ...noIat } = claims;
  const { exp: _e, ...noExp } = claims;
  const at = nowSeconds();
  const by = (change: Record<string, unknown>) => hs256(project.secret, { claims: { ...claims, ...change } });
  const headed = (header: Record<string, unknown>) => hs256(project.secret, { header, claims });
  const good = hs256(project.secret, { claims });
  const [head = "", body = "", mac = ""] = good.split(".");
  const attacker = newP256();
  const jwk = attacker.publicKey.export({ format: "jwk" });
  const forged: Record<string, string> = {
    "another project's key": hs256(other.secret, { claims }),
    "another project's audience": by({ aud: other.id }),
    "both projects' audience": by({ aud: [project.id, other.id] }),
    "no audience": hs256(project.secret, { claims: noAud }),
    none: noneToken({ claims }),
    "NONE with a signature": `${Buffer.from(JSON.stringify({ alg: "NONE" })).toString("base64url")}.${body}.${mac}`,
    "no signature": `${head}.${body}.`,
    "half a signature": `${head}.${body}.${mac.slice(0, 20)}`,
    "other claims under the signature": `${head}.${Buffer.from(JSON.stringify({ ...claims, sub: "x" })).toString("base64url")}.${mac}`,
    "HS256 under the public key's PEM": hs256(pemOf(keys.rsa.publicKey), { claims }),
    "HS256 under the public key's JWK": hs256(JSON.stringify(keys.es.publicKey.export({ format: "jwk" })), { claims }),
    "HS256 under the public key's bytes": hs256(keys.ed.publicKey.export({ type: "spki", format: "der" }), { claims }),
    "HS256 under nothing": hs256("", { claims }),
    "HS256 under the secret without its prefix": hs256(project.secret.slice(4), { claims }),
    "an attacker's ES256": es256(attacker.privateKey, { claims }),
    "a key brought along as jwk": es256(attacker.privateKey, { header: { jwk }, claims }),
    "a key fetched from jku": es256(attacker.privateKey, { header: { jku: "https://127.0.0.1:9/keys" }, claims }),
    "a key fetched from x5u": es256(attacker.privateKey, { header: { x5u: "https://127.0.0.1:9/keys" }, claims }),
    "an attacker's EdDSA": eddsa(newEd25519().privateKey, { claims }),
    "an attacker's RS256": rs256(newRsa(2_048).privateKey, { claims }),
    "a key's id that there is none of": headed({ kid: "idk_06bq4ghm31tz5d2ns8y7k9w0ac" }),
    "a path as kid": headed({ kid: "../../dev/null" }),
    "a kid that is no text": headed({ kid: { $ne: null } }),
    "a critical header": headed({ crit: ["exp"] }),
    expired: by({ iat: at - 7_200, exp: at - 3_600 }),
    "no exp": hs256(project.secret, { claims: noExp }),
    "no iat": hs256(project.secret, { claims: noIat }),
    "a life of 25 hours": by({ exp: at + 25 * 3_600 }),
    "exp before iat": by({ exp: at - 1 }),
    "a clock an hour ahead": by({ iat: at + 3_600, exp: at + 7_200 }),
    "not before an hour": by({ nbf: at + 3_600 }),
    "times as text": by({ iat: `${at}`, exp: `${at + 60}` }),
    "no subject": hs256(project.secret, { claims: noSub }),
    "a subject of 129 characters": by({ sub: "u".repeat(129) }),
    "a subject of `..`": by({ sub: ".." }),
    "a subject with a slash": by({ sub: "a/b" }),
    "a subject with a space": by({ sub: "a b" }),
    "an empty subject": by({ sub: "" }),
    "a subject that is a list": by({ sub: ["victim"] }),
    "claims that are a list": `${head}.${Buffer.from("[]").toString("base64url")}.${mac}`,
  };
  const mine = await phone(project);
  for (const [what, user_token] of Object.entries(forged)) {
    const identifier = apnsToken();
    for (const attempt of [
      identify(project, { identifier, user_token }),
      own(`PATCH /devices/${mine.id}`, mine.credential, { device: { user_token } }),
      own("PATCH /metadata", mine.credential, { metadata: {}, user_token }),
      request(system.gateway, "PATCH /api/v1/metadata", {
        body: { project_id: project.id, identifier: mine.token, metadata: {}, user_token },
      }),
    ]) {
      const { status, body: answer, text } = await attempt;
      expect([403, 422], `${what}: ${text}`).toContain(status);
      expect(answer.errors.join(), what).toContain("user_token");
      expect(text, what).not.toContain(user_token);
    }
    expect(
      (await project.devices()).some(({ token }) => token === identifier),
      what,
    ).toBe(false);
  }
  for (const bad of ["", "x", "a.b", "a.b.c.d", `${good}=`, "a".repeat(5_000)])
    expectStatus(await identify(project, { identifier: apnsToken(), user_token: bad }), 403, 422);
  expect(await userOf(project, mine.id)).toBeNull();
  // As a credential it opens nothing either.
  expectStatus(await own("GET /devices", good), 401);
  expect(await reached(project, ["user:victim"])).toEqual([victim.id]);

  // The same keys, used as they are meant, log in; so does a clock that is an hour behind.
  const tokens = [
    es256(keys.es.privateKey, { claims: claimsOf(project.id, "by-es") }),
    eddsa(keys.ed.privateKey, { claims: claimsOf(project.id, "by-ed") }),
    rs256(keys.rsa.privateKey, { claims: claimsOf(project.id, "by-rsa") }),
    by({ sub: "behind", iat: at - 3_600, exp: at + 600, aud: [project.id] }),
  ];
  for (const user_token of tokens) expectStatus(await identify(project, { identifier: apnsToken(), user_token }), 201);
  for (const user of ["by-es", "by-ed", "by-rsa", "behind"])
    expect(await reached(project, [`user:${user}`])).toHaveLength(1);
  show(task, { forged: Object.keys(forged).length, doors: 4, "users gained": 0 });
});

describe("identity keys", () => {
  test("a third secret, a fifth public key, and keys that are none, are refused", async ({ task }) => {
    const project = await newProject("Keys");
    const add = (body: unknown) => system.admin(`POST ${keysOf(project)}`, { body });
    expectStatus(await add({}), 201);
    const third = await Promise.all([add({}), add({}), add({})]);
    expect(third.map(({ status }) => status)).toEqual([409, 409, 409]);
    const p384 = (await import("node:crypto")).generateKeyPairSync("ec", { namedCurve: "P-384" });
    const { privateKey, publicKey } = newP256();
    const jwk = publicKey.export({ format: "jwk" });
    const bad: unknown[] = [
      "",
      "no key",
      "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----",
      privateKey.export({ type: "pkcs8", format: "pem" }),
      privateKey.export({ format: "jwk" }),
      { kty: "oct", k: "c2VjcmV0" },
      { kty: "EC", crv: "P-256" },
      { ...jwk, alg: "HS256" },
      { ...jwk, use: "enc" },
      pemOf(p384.publicKey),
      pemOf(newRsa(1_024).publicKey),
      {},
      [],
      7,
    ];
    for (const public_key of bad) expectStatus(await add({ public_key }), 422);
    for (let n = 0; n < 4; n++)
      expectStatus(await add({ public_key: newP256().publicKey.export({ format: "jwk" }) }), 201);
    expectStatus(await add({ public_key: jwk }), 409);
    const listed = expectStatus(await system.admin(`GET ${keysOf(project)}`), 200);
    expect(listed.body.data).toHaveLength(6);
    expect(listed.text).not.toContain("his_");

    // A deleted key is void at once, while the other goes on.
    const first = listed.body.data[0].id;
    expectStatus(await system.admin(`DELETE ${keysOf(project)}/${first}`), 204);
    const late = await identify(project, { identifier: apnsToken(), user_token: tokenOf(project, "late") });
    expectStatus(late, 403);
    expectStatus(await system.admin(`DELETE ${keysOf(project)}/${first}`), 404);
    show(task, { "keys refused": bad.length + 4, "secrets at a time": 2, "public keys at a time": 4 });
  });
});

test("a claim by rotation, re-registration or a token taken over reaches the victim alone", async ({ task }) => {
  const project = await newProject("Rotation");
  const victim = await phone(project, "victim");
  const thief = await phone(project, "thief");
  const stolen = apnsToken();
  // Who knows the push token has not proven to be the device, with whatever of their own they come.
  const rotation = { identifier: stolen, previous_identifier: victim.token };
  const first = expectStatus(await identify(project, rotation), 201).body;
  expect(first.data.id).not.toBe(victim.id);
  const second = { ...rotation, identifier: apnsToken() };
  expectStatus(await identify(project, second, thief.credential), 201);
  const third = { ...rotation, identifier: apnsToken(), user_token: tokenOf(project, "thief") };
  expectStatus(await identify(project, third), 201);
  // Registered again by a stranger, the device stays whose it is, and the stranger learns nothing of it.
  const again = expectStatus(await identify(project, { identifier: victim.token }), 200);
  expect(Object.keys(again.body)).toEqual(["data"]);
  expect(await userOf(project, first.data.id)).toBeNull();
  expect(await reached(project, ["user:victim"])).toEqual([victim.id]);
  expect(await system.simulators.pushes({ token: stolen })).toEqual([]);

  // With proof it is the same device under its new token: by its credential, or as its user.
  const renewed = apnsToken();
  const byCredential = { identifier: renewed, previous_identifier: victim.token };
  expectStatus(await identify(project, byCredential, victim.credential), 200);
  const byUser = { identifier: apnsToken(), previous_identifier: renewed, user_token: tokenOf(project, "victim") };
  expectStatus(await identify(project, byUser), 200);
  expect(await reached(project, ["user:victim"])).toEqual([victim.id]);
  expect((await system.simulators.pushes({ token: byUser.identifier })).length).toBe(1);

  // A credential that is none any more registers as none would.
  expectStatus(await identify(project, { identifier: apnsToken() }, "hdc_stale"), 201);
  // A new push token inherits nobody, and one that another device holds is not given away.
  expect(await userOf(project, (await phone(project)).id)).toBeNull();
  expectStatus(
    await identify(project, { identifier: thief.token, previous_identifier: byUser.identifier }, victim.credential),
    409,
  );
  show(task, { "rotations without proof": 3, "victim's pushes received by others": 0 });
});

test("a phone that changes hands: log-outs, replayed tokens, logins at once", async ({ task }) => {
  const project = await newProject("Hands");
  const { id, token, credential } = await phone(project);
  const at = nowSeconds();
  const login = (user: string, iat: number) =>
    own(`PATCH /devices/${id}`, credential, { device: { user_token: tokenOf(project, user, { iat, exp: at + 600 }) } });
  expectStatus(await login("ann", at - 50), 200);
  expectStatus(await login("ann", at - 50), 200); // the same again changes nothing
  expectStatus(await login("ann", at - 60), 200); // nor does an earlier one of the same user
  expectStatus(await login("bob", at - 50), 409);
  expectStatus(await login("bob", at - 51), 409);
  expect(await userOf(project, id)).toBe("ann");
  expectStatus(await login("bob", at - 49), 200); // as somebody else it moves
  expect(await reached(project, ["user:ann"])).toEqual([]);
  expectStatus(await own(`DELETE /devices/${id}/user`, credential), 204);
  expectStatus(await own(`DELETE /devices/${id}/user`, credential), 204);
  for (const [user, iat] of [
    ["bob", at - 49],
    ["ann", at - 50],
  ] as const)
    expectStatus(await login(user, iat), 409);
  expectStatus(
    await identify(project, { identifier: token, user_token: tokenOf(project, "bob", { iat: at - 49 }) }),
    409,
  );
  expect(await userOf(project, id)).toBeNull();
  // Nobody else logs it out, or in.
  const other = await phone(project);
  expectStatus(await own(`DELETE /devices/${id}/user`, other.credential), 403);
  expectStatus(
    await own(`PATCH /devices/${id}`, other.credential, { device: { user_token: tokenOf(project, "x") } }),
    403,
  );

  // Logins and log-outs of the same moment end in one of their states, and the newest token wins over all earlier ones.
  const rounds = 40;
  for (let round = 0; round < 3; round++) {
    const all = Array.from({ length: rounds }, (_, n) =>
      n % 4 === 3 ? own(`DELETE /devices/${id}/user`, credential) : login(`user-${n}`, at - 40 + round + n / rounds),
    );
    for (const { status, text } of await Promise.all(all)) expect([200, 204, 409], text).toContain(status);
    const user = await userOf(project, id);
    expect(user === null || /^user-\d+$/.test(user)).toBe(true);
    const facets = (await devicesOf(project))
      .find(({ _id }) => _id === id)
      ?.facets.filter((one) => one.startsWith("u:"));
    expect(facets).toEqual(user === null ? [] : [`u:${user}`]);
  }
  // The project's token says so too, and a user whose device is gone is not one.
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
  show(task, { "replays refused": 5, "logins and log-outs at once": 3 * rounds });
});

const devicesOf = (project: Project) => {
  const { client, name } = system.registryDatabase;
  return client
    .db(name)
    .collection<{ _id: string; projectId: string; facets: string[] }>("devices")
    .find({ projectId: project.id })
    .toArray();
};

test("what waited for one user is not sent to the next: retried, paused, scheduled", async ({ task }) => {
  const project = await newProject("Waited");
  const moving = await phone(project, "ann");
  const staying = await phone(project, "ann");
  await system.simulators.script([
    { provider: "apns", tokenPrefix: moving.token.slice(0, 12), status: 503, reason: "ServiceUnavailable", times: 1 },
    { provider: "apns", tokenPrefix: staying.token.slice(0, 12), status: 503, reason: "ServiceUnavailable", times: 1 },
  ]);
  const sent = await project.send({ title: "Ann's balance", targets: ["user:ann"] });
  const waits = async () => {
    const rows = await project.deliveries(sent.id);
    if (!rows.every(({ status, attempts }) => status === "pending" && attempts === 1))
      throw new Error(JSON.stringify(rows));
  };
  await eventually(waits, { timeoutMs: 20_000 });
  const at = nowSeconds();
  const next = tokenOf(project, "bob", { iat: at + 5 });
  expectStatus(await own(`PATCH /devices/${moving.id}`, moving.credential, { device: { user_token: next } }), 200);
  const scheduled = await project.send({
    title: "Ann's reminder",
    targets: ["user:ann"],
    send_at: new Date(Date.now() + 3_000).toISOString(),
  });
  const final = await project.final(sent.id, 60_000);
  expect(final.counts).toMatchObject({ devices: 2, accepted: 1, skipped: 1, pending: 0 });
  expect(final.skips).toEqual({ moved: 1 });
  const rows = await project.deliveries(sent.id);
  expect(rows.find(({ device_id }) => device_id === moving.id)).toMatchObject({
    status: "skipped",
    reason: "moved",
    user_id: "ann",
    attempts: 1,
  });
  const story = expectStatus(await project.call(`GET /notifications/${sent.id}/devices/${moving.id}`), 200).body.data;
  expect(story).toMatchObject({ status: "skipped", user_id: "ann" });
  expect(story.story.join(" ")).toContain("now belongs to another user");
  expect((await project.final(scheduled.id, 60_000)).counts).toMatchObject({ devices: 1, accepted: 1 });
  const pushes = await system.simulators.pushes({ token: moving.token });
  expect(pushes.map(({ status }) => status)).toEqual([503]);
  expect(await reached(project, ["user:bob"])).toEqual([moving.id]);

  // The provider refuses the credential: what is sent to Bob waits for days, if need be, and meanwhile the phone is Carl's.
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

test("a closed topic, and a device's topics, are not the device's to choose", async ({ task }) => {
  const project = await newProject("Closed");
  const { id, credential } = await phone(project);
  const created = await project.call("POST /topics", { body: { topic: { name: "staff", closed: true } } });
  expectStatus(created, 201);
  expectStatus(await own(`PUT /devices/${id}/topics/staff`, credential), 403);
  expectStatus(await own(`PUT /devices/${id}/topics/${created.body.data.id}`, credential), 403);
  expect(await reached(project, ["topic:staff"])).toEqual([]);
  expectStatus(await project.call(`PUT /devices/${id}/topics/staff`), 204);
  expectStatus(await own(`DELETE /devices/${id}/topics/staff`, credential), 204);
  expectStatus(await own(`PATCH /topics/staff`, credential, { topic: { closed: false } }), 403);
  expectStatus(await project.call("PATCH /topics/staff", { body: { topic: { closed: false } } }), 200);
  expectStatus(await own(`PUT /devices/${id}/topics/staff`, credential), 204);
  show(task, { "subscriptions to a closed topic": 0 });
});

test("erasure leaves no row, in the middle of a broadcast and beside logins, and old tokens stay out", async ({
  task,
}) => {
  const project = await newProject("Erasure");
  const user = "erased-8412-user";
  const old = tokenOf(project, user);
  const mine = await phone(project, user);
  await project.register({ user_id: user, metadata: { name: "of-the-erased" } });
  const kept = await phone(project, "stays");
  await system.simulators.script([
    { provider: "apns", tokenPrefix: mine.token.slice(0, 12), status: 503, reason: "ServiceUnavailable", times: 1 },
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
  const logins = Array.from({ length: 10 }, () => identify(project, { identifier: apnsToken(), user_token: old }));
  const [erased] = await Promise.all([project.call(`DELETE /users/${user}`), ...logins]);
  expect(expectStatus(erased, 202).body.data).toMatchObject({ user_id: user, databases: "within an hour" });
  for (let n = 0; n < 3; n++) {
    const late = await identify(project, { identifier: apnsToken(), user_token: old });
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
  expect(await reached(project, ["user:stays"])).toEqual([kept.id]);
  expectStatus(await project.call(`DELETE /users/${user}`), 202); // again
  show(task, { collections: looked, "rows that name the user": 0, "logins beside it": logins.length });
});
