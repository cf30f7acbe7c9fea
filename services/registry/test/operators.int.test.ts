import { openBucket } from "@herald/bus";
import {
  ChangeOperatorRequest,
  CreateOperatorRequest,
  DeleteOperator,
  GetOperator,
  ListOperators,
  newOperatorId,
  newOperatorToken,
  newProjectId,
  type OperatorId,
  OperatorRecord,
  type ProjectGrant,
  RotateOperatorToken,
  SignOutOperator,
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
  const operator = await registry.ask(CreateOperatorRequest, { operatorId, ...fields, tokenHash });
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
  await registry.ask(ChangeOperatorRequest, { operatorId, projects });
  expect(await recordOf(tokenHash)).toMatchObject({ role: "viewer", projects });
  const { signed_out_at: signedOutAt } = await registry.ask(SignOutOperator, { operatorId });
  expect(signedOutAt).toBeDefined();
  expect(await recordOf(tokenHash)).toMatchObject({ signedOutAt, projects });
});

test("a changed role is replicated before the reply", async () => {
  const { operatorId, tokenHash } = await create();
  const changed = await registry.ask(ChangeOperatorRequest, { operatorId, role: "admin" });
  expect(changed).toMatchObject({ name: "Maria", role: "admin" });
  expect(await recordOf(tokenHash)).toMatchObject({ role: "admin" });
});

test("a replaced token is removed from the gateways before the reply", async () => {
  const { operatorId, tokenHash } = await create();
  const next = newHash();
  const rotated = await registry.ask(RotateOperatorToken, { operatorId, tokenHash: next });
  expect(rotated.rotated_at).toBeDefined();
  expect([await recordOf(tokenHash), await recordOf(next)]).toEqual([undefined, expect.anything()]);
});

test("tokens that are replaced at the same time leave one that works", async () => {
  const { operatorId, tokenHash } = await create();
  const hashes = Array.from({ length: 8 }, newHash);
  await Promise.all(hashes.map((next) => registry.ask(RotateOperatorToken, { operatorId, tokenHash: next })));
  const current = (await documents().findOne({ _id: operatorId }))?.tokenHash ?? "";
  await eventually(async () => {
    const live = [];
    for (const hash of [tokenHash, ...hashes]) if (await recordOf(hash)) live.push(hash);
    expect(live).toEqual([current]);
  });
});

test("a deleted operator is gone from the gateways before the reply, and then from the database", async () => {
  const { operatorId, tokenHash } = await create();
  await registry.ask(DeleteOperator, { operatorId });
  expect(await recordOf(tokenHash)).toBeUndefined();
  await eventually(async () => expect(await documents().findOne({ _id: operatorId })).toBeNull());
  for (const contract of [GetOperator, SignOutOperator, DeleteOperator])
    expect(await failure(registry.ask(contract, { operatorId }))).toMatchObject({ code: "operator-not-found" });
  const again = registry.ask(RotateOperatorToken, { operatorId, tokenHash: newHash() });
  expect(await failure(again)).toMatchObject({ code: "operator-not-found" });
});

test("operators are listed in pages, oldest first", async () => {
  const [first, second] = [await create(), await create()];
  const { data } = await registry.ask(ListOperators, { page: { by: "page", page: 1, perPage: 100 } });
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
