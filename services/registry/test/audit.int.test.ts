import { randomUUID } from "node:crypto";
import { publishEvent } from "@herald/bus";
import { type AuditCheck, type AuditRow, auditRequests, installation, newProjectId } from "@herald/contracts";
import { eventually } from "@herald/testing";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { AuditDocument } from "../src/domain/audit-chain.ts";
import { createAuditStore } from "../src/stores/audit-store.ts";
import { failure, type RegistryTest, startRegistryTest } from "./registry-fixture.ts";

let registry: RegistryTest;
beforeAll(async () => {
  registry = await startRegistryTest();
});
afterAll(() => registry.stop());
// The chain is the installation's: each test begins another.
beforeEach(async () => {
  for (const name of ["auditRows", "auditHeads"]) await registry.db.collection(name).deleteMany({});
});

const rows = () => registry.db.collection<AuditDocument>("auditRows");

type Fields = { id?: string; action?: string; operator?: string; project?: ReturnType<typeof newProjectId>; at?: Date };
const record = ({ id = randomUUID(), action = "changeProject", operator = "root", project, at = new Date() }: Fields) =>
  publishEvent(registry.bus, {
    id,
    event: "AuditRecordedV1",
    subject: operator,
    at,
    data: {
      project_id: installation,
      operator: { id: operator as "root", name: "Maria", role: "admin" },
      action,
      ...(project && { target_project_id: project }),
      target: "/admin/v1/projects",
      address: "127.0.0.1",
      before: { name: "Shop" },
      after: null,
      at: at.toISOString(),
    },
  });

const list = async (filters: object = {}): Promise<AuditRow[]> =>
  (await registry.ask(auditRequests.list, { page: { after: "", perPage: 100 }, ...filters })).data;
const verify = (after = 0): Promise<AuditCheck> => registry.ask(auditRequests.verify, { after });

/** Records `count` rows, one after the other. */
const fill = async (count: number) => {
  for (let index = 0; index < count; index++) await record({});
  await eventually(async () => expect(await rows().countDocuments()).toBe(count));
};

test("events become rows of one chain, each once", async () => {
  const id = randomUUID();
  await record({ id });
  await eventually(async () => expect(await list()).toHaveLength(1));
  // The stream drops the second message of an id. The handler must too, because a message can be delivered again.
  await Promise.all([record({}), record({}), record({})]);
  await eventually(async () => expect(await list()).toHaveLength(4));
  const found = (await list()).toReversed();
  expect(found.map(({ sequence }) => sequence)).toEqual([1, 2, 3, 4]);
  expect(found[0]).toMatchObject({
    event_id: id,
    operator: { id: "root", name: "Maria", role: "admin" },
    before: { name: "Shop" },
    after: null,
    previous_hash: "0".repeat(64),
  });
  for (const [index, row] of found.entries()) if (index > 0) expect(row.previous_hash).toBe(found[index - 1]?.hash);
  expect(await verify()).toMatchObject({ valid: true, checked: 4, head: { sequence: 4 }, next: null });
});

test("two processes that append at once make one chain, with one row for each event", async () => {
  const store = () => createAuditStore(registry.db, [{ id: "m1", secret: Buffer.alloc(32, 7) }]);
  const facts = (eventId: string) => ({
    eventId,
    operator: { id: "root", name: "root", role: "admin" } as const,
    ...{ action: "changeProject", target: "/admin/v1/projects", address: "127.0.0.1", at: new Date() },
  });
  const shared = Array.from({ length: 20 }, () => facts(randomUUID()));
  const appended = await Promise.all(
    Array.from({ length: 8 }, (_, n) => {
      const own = Array.from({ length: 30 }, () => facts(randomUUID()));
      return store().append(n % 2 ? [...shared, ...own] : [...own, ...shared, ...own]);
    }),
  );
  expect(appended.flat()).toHaveLength(20 + 8 * 30);
  expect(await rows().countDocuments()).toBe(20 + 8 * 30);
  expect(await verify()).toMatchObject({ valid: true, checked: 20 + 8 * 30, next: null });
});

test("rows are found by operator, action, project and time, newest first, page by page", async () => {
  const project = newProjectId(new Date());
  const maria = "opr_06bq4ghm31tz5d2ns8y7k9w0ac";
  await record({ operator: maria, at: new Date("2030-01-01T00:00:00Z") });
  await record({ action: "deleteProject", project, at: new Date("2030-01-02T00:00:00Z") });
  await record({ at: new Date("2030-01-03T00:00:00Z") });
  await eventually(async () => expect(await list()).toHaveLength(3));
  const sequences = async (filters: object) => (await list(filters)).map(({ sequence }) => sequence);
  expect(await sequences({})).toEqual([3, 2, 1]);
  expect(await sequences({ operator: maria })).toEqual([1]);
  expect(await sequences({ operator: "root" })).toEqual([3, 2]);
  expect(await sequences({ action: "deleteProject" })).toEqual([2]);
  expect(await sequences({ targetProjectId: project })).toEqual([2]);
  const day = { createdAfter: "2030-01-02T00:00:00Z", createdBefore: "2030-01-03T00:00:00Z" };
  expect(await sequences(day)).toEqual([2]);
  const first = await registry.ask(auditRequests.list, { page: { after: "", perPage: 2 } });
  expect([first.data.length, first.next]).toEqual([2, "2"]);
  const second = await registry.ask(auditRequests.list, { page: { after: first.next ?? "", perPage: 2 } });
  expect([second.data.map(({ sequence }) => sequence), second.next]).toEqual([[1], null]);
  const wrong = registry.ask(auditRequests.list, { page: { after: "x", perPage: 2 } });
  expect(await failure(wrong)).toMatchObject({ code: "validation-failed" });
});

test("retention removes rows that are older than configured", async () => {
  for (const daysAgo of [90, 63, 61, 0]) await record({ at: new Date(Date.now() - daysAgo * 86_400_000) });
  await eventually(async () => expect(await rows().countDocuments()).toBe(4));
  const second = registry.newApp(undefined, { HERALD_REGISTRY_AUDIT_RETENTION: "62d" });
  await second.start();
  await eventually(async () => expect((await list()).map(({ sequence }) => sequence)).toEqual([4, 3]));
  await second.stop();
  expect(await verify()).toMatchObject({ valid: true, checked: 2, removed: { sequence: 2 } });
});

describe("a check finds", () => {
  test("a row whose action, operator, state, time or hash was changed", async () => {
    await fill(4);
    const original = await rows().findOne({ _id: 3 });
    if (original === null) throw new Error("there is no third row");
    const changes: Partial<AuditDocument>[] = [
      { action: "getProject" },
      { operator: { id: "root", name: "Mallory", role: "admin" } },
      { before: '{"name":"Other"}' },
      { at: new Date("2020-01-01T00:00:00Z") },
      { hash: "f".repeat(64) },
    ];
    for (const change of changes) {
      await rows().updateOne({ _id: 3 }, { $set: change });
      expect(await verify(), JSON.stringify(change)).toMatchObject({
        valid: false,
        checked: 2,
        problem: { sequence: 3, detail: "the row was changed or forged: its hash differs" },
      });
      await rows().replaceOne({ _id: 3 }, original);
      expect(await verify()).toMatchObject({ valid: true, checked: 4 });
    }
  });

  test("a removed row", async () => {
    await fill(4);
    await rows().deleteOne({ _id: 2 });
    expect((await verify()).problem).toEqual({ sequence: 3, detail: "the row before it is missing" });
  });

  test("a removed end, also after further rows", async () => {
    await fill(4);
    await rows().deleteMany({ _id: { $gte: 3 } });
    expect((await verify()).problem).toEqual({ sequence: 3, detail: "the row is missing" });
    await record({});
    await eventually(async () => expect(await rows().countDocuments()).toBe(3));
    expect((await verify()).problem).toEqual({ sequence: 5, detail: "rows before it are missing" });
  });

  test("a row that replaces another, with hashes made without the master key", async () => {
    await fill(3);
    const [second] = await rows().find({ _id: 2 }).toArray();
    if (second === undefined) throw new Error("there is no second row");
    await rows().deleteOne({ _id: 2 });
    await rows().insertOne({ ...second, eventId: randomUUID(), hash: "a".repeat(64) });
    await rows().updateOne({ _id: 3 }, { $set: { previousHash: "a".repeat(64) } });
    expect((await verify()).problem?.sequence).toBe(2);
  });
});

test("a provider that Herald itself resumed has a row, and one that new settings resumed has only its operator's", async () => {
  const project = newProjectId(new Date());
  const at = new Date();
  const resume = (id: string, reason: "accepted-again" | "new-settings") =>
    publishEvent(registry.bus, {
      ...{ id, event: "ProviderResumedV1", subject: "apns", at },
      data: { project_id: project, provider: "apns", reason, at: at.toISOString() },
    });
  await resume("first", "new-settings");
  await Promise.all([resume("second", "accepted-again"), resume("second", "accepted-again")]);
  await record({ project });
  await eventually(async () => expect(await list({ targetProjectId: project })).toHaveLength(2));
  expect(await list({ action: "resumeProvider" })).toMatchObject([
    {
      event_id: "second",
      operator: { id: "herald", name: "Herald" },
      project_id: project,
      target: `/admin/v1/projects/${project}/providers/apns`,
      before: { status: "paused" },
      after: { status: "active" },
    },
  ]);
  expect(await verify()).toMatchObject({ valid: true, checked: 2 });
});
