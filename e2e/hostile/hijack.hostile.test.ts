import { expectStatus, request } from "@herald/testing";
import { describe, expect } from "vitest";
import { apnsToken } from "../harness/project.ts";
import { logOnFailure, type System } from "../harness/system.ts";
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
import { cpuMs } from "./cpu-time.ts";
import { show } from "./figures.ts";
import { test } from "./shared-system.ts";
import { createUserApps, keysOf, tokenOf, type UserApps, userOf } from "./user-apps.ts";

let system: System;
let users: UserApps;
test.beforeAll(async ({ system: shared }) => {
  system = shared;
  users = createUserApps(system);
});
logOnFailure(() => system);

test("a claimed user in metadata reaches the victim alone", async ({ task }) => {
  const project = await users.newProject("Claim");
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
    const answer = expectStatus(await users.identify(project, body), 201).body;
    const names = Object.keys(data).flatMap((key) => [`metadata.${key}`, `identifiers.${key}`]);
    expect(answer.ignored.toSorted()).toEqual(names.toSorted());
    ignored += names.length;
    const device = expectStatus(await users.own(`GET /devices/${answer.data.id}`, answer.credential), 200).body.data;
    expect(device).toMatchObject({ metadata: { plan: "pro" }, identifiers: {}, user_id: null });
    const inMetadata = Object.keys(data).map((key) => `metadata.${key}`);
    for (const [attempt, left] of [
      [users.own("PATCH /metadata", answer.credential, { metadata: data }), inMetadata],
      [users.own("PUT /metadata", answer.credential, { metadata: { user_id: null } }), ["metadata.user_id"]],
      [
        users.own(`PATCH /devices/${answer.data.id}`, answer.credential, { device: { identifiers: data } }),
        Object.keys(data).map((key) => `identifiers.${key}`),
      ],
      [
        request(system.gateway, "PATCH /api/v1/metadata", {
          body: { project_id: project.id, identifier: device.token, metadata: data },
        }),
        inMetadata,
      ],
    ] as const)
      expect(expectStatus(await attempt, 200).body.ignored.toSorted()).toEqual(left.toSorted());
    const after = expectStatus(await users.own(`GET /devices/${answer.data.id}`, answer.credential), 200).body.data;
    expect(after).toMatchObject({ metadata: { plan: "pro" }, identifiers: {}, user_id: null });
    const claim = await users.own(`PATCH /devices/${answer.data.id}`, answer.credential, {
      device: { user_id: "victim" },
    });
    expectStatus(claim, 403);
  }
  const plain = expectStatus(
    await users.identify(project, { identifier: apnsToken(), metadata: { plan: "pro" } }),
    201,
  );
  expect(plain.body.ignored).toBeUndefined();
  for (const target of ["metadata:user_id=victim", "metadata:email=v@example.com", "user:victim"])
    expect(await users.reached(project, [target]), target).toEqual([victim.device.id]);
  for (const target of [
    "identifiers:user_id=victim",
    "metadata:userId=victim",
    "condition:metadata.USERID == 'victim'",
  ])
    expect(await users.reached(project, [target]), target).toEqual([]);
  show(task, { spellings: spellings.length, "paths left out": ignored, "devices reached beside the victim's": 0 });
});

test("forged, foreign, expired and misused user tokens set no user", async ({ task }) => {
  const project = await users.newProject("Forged");
  const other = await users.newProject("Other");
  const victim = await users.phone(project, "victim");
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
  const mine = await users.phone(project);
  const before = await cpuMs(system);
  const identifiers = new Set<string>();
  for (const [what, userToken] of Object.entries(forged)) {
    const identifier = apnsToken();
    identifiers.add(identifier);
    for (const attempt of [
      users.identify(project, { identifier, user_token: userToken }),
      users.own(`PATCH /devices/${mine.id}`, mine.credential, { device: { user_token: userToken } }),
      users.own("PATCH /metadata", mine.credential, { metadata: {}, user_token: userToken }),
      request(system.gateway, "PATCH /api/v1/metadata", {
        body: { project_id: project.id, identifier: mine.token, metadata: {}, user_token: userToken },
      }),
    ]) {
      const { status, body: answer, text } = await attempt;
      expect([403, 422], `${what}: ${text}`).toContain(status);
      expect(answer.errors.join(), what).toContain("user_token");
      expect(text, what).not.toContain(userToken);
    }
  }
  expect((await project.devices()).filter(({ token }) => identifiers.has(token))).toEqual([]);
  const spent = (await cpuMs(system)) - before;
  for (const bad of ["", "x", "a.b", "a.b.c.d", `${good}=`, "a".repeat(5_000)])
    expectStatus(await users.identify(project, { identifier: apnsToken(), user_token: bad }), 403, 422);
  expect(await userOf(project, mine.id)).toBeNull();
  // A user token is no credential.
  expectStatus(await users.own("GET /devices", good), 401);
  expect(await users.reached(project, ["user:victim"])).toEqual([victim.id]);

  // Tokens that use the same keys correctly log in, also with a clock that is an hour behind.
  const tokens = [
    es256(keys.es.privateKey, { claims: claimsOf(project.id, "by-es") }),
    eddsa(keys.ed.privateKey, { claims: claimsOf(project.id, "by-ed") }),
    rs256(keys.rsa.privateKey, { claims: claimsOf(project.id, "by-rsa") }),
    by({ sub: "behind", iat: at - 3_600, exp: at + 600, aud: [project.id] }),
  ];
  for (const userToken of tokens)
    expectStatus(await users.identify(project, { identifier: apnsToken(), user_token: userToken }), 201);
  for (const user of ["by-es", "by-ed", "by-rsa", "behind"])
    expect(await users.reached(project, [`user:${user}`])).toHaveLength(1);
  const requests = Object.keys(forged).length * 4;
  show(task, {
    forged: Object.keys(forged).length,
    routes: 4,
    "users gained": 0,
    "CPU ms a refusal": Math.round((spent / requests) * 10) / 10,
  });
});

describe("identity keys", () => {
  test("a third secret, a fifth public key, and invalid keys are refused", async ({ task }) => {
    const project = await users.newProject("Keys");
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
    for (const publicKey of bad) expectStatus(await add({ public_key: publicKey }), 422);
    for (let n = 0; n < 4; n++)
      expectStatus(await add({ public_key: newP256().publicKey.export({ format: "jwk" }) }), 201);
    expectStatus(await add({ public_key: jwk }), 409);
    const listed = expectStatus(await system.admin(`GET ${keysOf(project)}`), 200);
    expect(listed.body.data).toHaveLength(6);
    expect(listed.text).not.toContain("his_");

    // A deleted key is invalid at once; the other still works.
    const first = listed.body.data[0].id;
    expectStatus(await system.admin(`DELETE ${keysOf(project)}/${first}`), 204);
    const late = await users.identify(project, { identifier: apnsToken(), user_token: tokenOf(project, "late") });
    expectStatus(late, 403);
    expectStatus(await system.admin(`DELETE ${keysOf(project)}/${first}`), 404);
    show(task, { "keys refused": bad.length + 4, "secrets at a time": 2, "public keys at a time": 4 });
  });
});

test("a claim by rotation or re-registration reaches the victim alone", async ({ task }) => {
  const project = await users.newProject("Rotation");
  const victim = await users.phone(project, "victim");
  const thief = await users.phone(project, "thief");
  const stolen = apnsToken();
  // Knowing the push token does not prove control of the device, whatever other credentials the attacker has.
  const rotation = { identifier: stolen, previous_identifier: victim.token };
  const first = expectStatus(await users.identify(project, rotation), 201).body;
  expect(first.data.id).not.toBe(victim.id);
  const second = { ...rotation, identifier: apnsToken() };
  expectStatus(await users.identify(project, second, thief.credential), 201);
  const third = { ...rotation, identifier: apnsToken(), user_token: tokenOf(project, "thief") };
  expectStatus(await users.identify(project, third), 201);
  // If a stranger registers the push token again, the device keeps its user, and the stranger learns nothing.
  const again = expectStatus(await users.identify(project, { identifier: victim.token }), 200);
  expect(Object.keys(again.body)).toEqual(["data"]);
  expect(await userOf(project, first.data.id)).toBeNull();
  expect(await users.reached(project, ["user:victim"])).toEqual([victim.id]);
  expect(await system.simulators.pushes({ token: stolen })).toEqual([]);

  // With proof, by credential or as its user, the device keeps its id under the new token.
  const renewed = apnsToken();
  const byCredential = { identifier: renewed, previous_identifier: victim.token };
  expectStatus(await users.identify(project, byCredential, victim.credential), 200);
  const byUser = { identifier: apnsToken(), previous_identifier: renewed, user_token: tokenOf(project, "victim") };
  expectStatus(await users.identify(project, byUser), 200);
  expect(await users.reached(project, ["user:victim"])).toEqual([victim.id]);
  expect((await system.simulators.pushes({ token: byUser.identifier })).length).toBe(1);

  // An expired credential registers like no credential.
  expectStatus(await users.identify(project, { identifier: apnsToken() }, "hdc_stale"), 201);
  // A new push token inherits no user, and the token of another device cannot be taken over.
  expect(await userOf(project, (await users.phone(project)).id)).toBeNull();
  expectStatus(
    await users.identify(
      project,
      { identifier: thief.token, previous_identifier: byUser.identifier },
      victim.credential,
    ),
    409,
  );
  show(task, { "rotations without proof": 3, "victim's pushes received by others": 0 });
});

test("a device cannot join or open a closed topic, but may leave it", async ({ task }) => {
  const project = await users.newProject("Closed");
  const { id, credential } = await users.phone(project);
  const created = await project.call("POST /topics", { body: { topic: { name: "staff", closed: true } } });
  expectStatus(created, 201);
  expectStatus(await users.own(`PUT /devices/${id}/topics/staff`, credential), 403);
  expectStatus(await users.own(`PUT /devices/${id}/topics/${created.body.data.id}`, credential), 403);
  expect(await users.reached(project, ["topic:staff"])).toEqual([]);
  expectStatus(await project.call(`PUT /devices/${id}/topics/staff`), 204);
  expectStatus(await users.own(`DELETE /devices/${id}/topics/staff`, credential), 204);
  expectStatus(await users.own(`PATCH /topics/staff`, credential, { topic: { closed: false } }), 403);
  expectStatus(await project.call("PATCH /topics/staff", { body: { topic: { closed: false } } }), 200);
  expectStatus(await users.own(`PUT /devices/${id}/topics/staff`, credential), 204);
  show(task, { "subscriptions to a closed topic": 0 });
});
