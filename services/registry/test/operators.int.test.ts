import { openBucket } from "@herald/bus";
import {
  identityHash,
  newOperatorId,
  newOperatorToken,
  newProjectId,
  type OperatorId,
  OperatorRecord,
  operatorRequests,
  type ProjectGrant,
  secretHash,
} from "@herald/contracts";
import { eventually } from "@herald/testing";
import { expect, test } from "vitest";
import type { OperatorDocument } from "../src/stores/operator-store.ts";
import { failure, useRegistry } from "./registry-fixture.ts";

const registry = useRegistry({ overrides: { reconcileEveryMs: 300 } });

const bucket = () => openBucket(registry.bus, "push_operators", OperatorRecord);
const documents = () => registry.db.collection<OperatorDocument>("operators");
const recordOf = async (hash: string) => (await bucket().get(hash))?.value;
const newHash = () => secretHash(newOperatorToken());

const grant: ProjectGrant = { id: newProjectId(new Date()), role: "operator" };

const create = async (operatorId: OperatorId = newOperatorId(new Date()), tokenHash = newHash()) => {
  const fields = { name: "Maria", role: "viewer" as const, projects: [grant] };
  const operator = await registry.ask(operatorRequests.create, { operatorId, ...fields, tokenHash });
  return { operatorId, tokenHash, operator };
};

test("an operator is replicated before the reply, and only the hash of its token is stored", async () => {
  const { operatorId, tokenHash, operator } = await create();
  const fields = { id: operatorId, name: "Maria", role: "viewer", projects: [grant] };
  expect(operator).toMatchObject(fields);
  expect(await recordOf(tokenHash)).toEqual(fields);
  expect((await documents().findOne({ _id: operatorId }))?.tokenHash).toBe(tokenHash);
});

test("a repeated creation makes one operator, with the later token", async () => {
  const { operatorId, tokenHash } = await create();
  const again = await create(operatorId);
  expect(again.operator.id).toBe(operatorId);
  expect(await recordOf(tokenHash)).toBeUndefined();
  expect(await recordOf(again.tokenHash)).toMatchObject({ id: operatorId });
  expect(await documents().countDocuments({ _id: operatorId })).toBe(1);
});

test("grants are replaced, and a sign-out is replicated with the token as it was, before the reply", async () => {
  const { operatorId, tokenHash } = await create();
  const projects = [{ ...grant, role: "admin" as const }];
  await registry.ask(operatorRequests.change, { operatorId, projects });
  expect(await recordOf(tokenHash)).toMatchObject({ role: "viewer", projects });
  const { signed_out_at: signedOutAt } = await registry.ask(operatorRequests.signOut, { operatorId });
  expect(signedOutAt).toBeDefined();
  expect(await recordOf(tokenHash)).toMatchObject({ signedOutAt, projects });
});

test("a changed role is replicated before the reply", async () => {
  const { operatorId, tokenHash } = await create();
  const changed = await registry.ask(operatorRequests.change, { operatorId, role: "admin" });
  expect(changed).toMatchObject({ name: "Maria", role: "admin" });
  expect(await recordOf(tokenHash)).toMatchObject({ role: "admin" });
});

test("a replaced token is removed from the gateways before the reply", async () => {
  const { operatorId, tokenHash } = await create();
  const next = newHash();
  const rotated = await registry.ask(operatorRequests.rotate, { operatorId, tokenHash: next });
  expect(rotated.rotated_at).toBeDefined();
  expect([await recordOf(tokenHash), await recordOf(next)]).toEqual([undefined, expect.anything()]);
});

test("tokens that are replaced at the same time leave one that works", async () => {
  const { operatorId, tokenHash } = await create();
  const hashes = Array.from({ length: 8 }, newHash);
  await Promise.all(hashes.map((next) => registry.ask(operatorRequests.rotate, { operatorId, tokenHash: next })));
  const current = (await documents().findOne({ _id: operatorId }))?.tokenHash ?? "";
  await eventually(async () => {
    const live = [];
    for (const hash of [tokenHash, ...hashes]) if (await recordOf(hash)) live.push(hash);
    expect(live).toEqual([current]);
  });
});

const signIn = (subject: string, fields: { groups?: string[]; everyone?: boolean; name?: string } = {}) => {
  const person = { name: "Maria", groups: ["staff"], everyone: false, ...fields };
  return registry.ask(operatorRequests.signIn, {
    issuer: "https://id.example",
    subject,
    email: "m@example.com",
    ...person,
  });
};
const identityRecord = (subject: string) => recordOf(identityHash("https://id.example", subject));

test("people are known by issuer and subject: one operator, however many sign in at once", async () => {
  const [first, ...others] = await Promise.all(Array.from({ length: 8 }, () => signIn("maria")));
  expect(new Set(others.map(({ id }) => id))).toEqual(new Set([first?.id]));
  expect(first).toMatchObject({ role: "member", projects: [], groups: ["staff"], email: "m@example.com" });
  expect(await identityRecord("maria")).toMatchObject({ id: first?.id, groups: ["staff"] });
  expect((await signIn("other")).id).not.toBe(first?.id);
  expect(await signIn("maria", { name: "M. Diaz", groups: ["b"] })).toMatchObject({ id: first?.id, name: "M. Diaz" });
  expect(await identityRecord("maria")).toMatchObject({ name: "M. Diaz", groups: ["b"] });
});

test("a person without group, role or grant is refused, and has lost the earlier groups", async () => {
  expect(await failure(signIn("outsider", { groups: [] }))).toMatchObject({ code: "sign-in-not-permitted" });
  expect(await identityRecord("outsider")).toBeUndefined();
  const { id: operatorId } = await signIn("leaver");
  expect(await failure(signIn("leaver", { groups: [] }))).toMatchObject({ code: "sign-in-not-permitted" });
  expect(await identityRecord("leaver")).toMatchObject({ groups: [] });
  await registry.ask(operatorRequests.change, { operatorId, projects: [grant] });
  expect(await signIn("leaver", { groups: [] })).toMatchObject({ id: operatorId, projects: [grant] });
  expect(await signIn("anyone", { groups: [], everyone: true })).toMatchObject({ role: "member" });
});

test("a token of such an operator has none of the groups' roles, and both end with a deletion", async () => {
  const { id: operatorId } = await signIn("with-token");
  const tokenHash = newHash();
  await registry.ask(operatorRequests.rotate, { operatorId, tokenHash });
  expect([(await recordOf(tokenHash))?.groups, (await identityRecord("with-token"))?.groups]).toEqual([
    undefined,
    ["staff"],
  ]);
  await registry.ask(operatorRequests.delete, { operatorId });
  expect([await recordOf(tokenHash), await identityRecord("with-token")]).toEqual([undefined, undefined]);
  await documents().insertOne({ ...deletedHalfway, identityHash: identityHash("https://id.example", "with-token") });
  expect((await signIn("with-token")).id).not.toBe(deletedHalfway._id);
});

const deletedHalfway: OperatorDocument = {
  ...{ _id: newOperatorId(new Date()), name: "Maria", role: "member", projects: [] },
  ...{ createdAt: new Date(), deletedAt: new Date() },
};

test("a deleted operator is gone from the gateways before the reply, and then from the database", async () => {
  const { operatorId, tokenHash } = await create();
  await registry.ask(operatorRequests.delete, { operatorId });
  expect(await recordOf(tokenHash)).toBeUndefined();
  await eventually(async () => expect(await documents().findOne({ _id: operatorId })).toBeNull());
  for (const contract of [operatorRequests.get, operatorRequests.signOut, operatorRequests.delete])
    expect(await failure(registry.ask(contract, { operatorId }))).toMatchObject({ code: "operator-not-found" });
  const again = registry.ask(operatorRequests.rotate, { operatorId, tokenHash: newHash() });
  expect(await failure(again)).toMatchObject({ code: "operator-not-found" });
});

test("operators are listed in pages, oldest first", async () => {
  const [first, second] = [await create(), await create()];
  const { data } = await registry.ask(operatorRequests.list, { page: { by: "page", page: 1, perPage: 100 } });
  const ids = data.map(({ id }) => id);
  expect(ids).toEqual(ids.toSorted());
  expect(ids).toEqual(expect.arrayContaining([first.operatorId, second.operatorId]));
});

test("entries that a crash left are repaired", async () => {
  const [kept, deleted, forged] = [await create(), await create(), newHash()];
  await documents().updateOne({ _id: deleted.operatorId }, { $set: { deletedAt: new Date() } });
  await bucket().delete(kept.tokenHash);
  await bucket().put(forged, { id: kept.operatorId, name: "Mallory", role: "admin", projects: [] });
  await eventually(async () => {
    expect(await recordOf(kept.tokenHash)).toMatchObject({ id: kept.operatorId });
    expect(await recordOf(deleted.tokenHash)).toBeUndefined();
    expect(await recordOf(forged)).toBeUndefined();
    expect(await documents().findOne({ _id: deleted.operatorId })).toBeNull();
  });
});
