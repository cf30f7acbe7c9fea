import { randomBytes } from "node:crypto";
import { createLogger, type MasterKeys, parseMasterKeys } from "@herald/kit";
import { eventually } from "@herald/testing";
import { afterAll, beforeAll, beforeEach, expect, test, vi } from "vitest";
import { createCredentialStore } from "../src/stores/credential-store.ts";
import { type DispatchTest, device, devices, startDispatchTest } from "./dispatch-fixture.ts";

let dispatch: DispatchTest;
beforeAll(async () => {
  dispatch = await startDispatchTest();
});
afterAll(() => dispatch.stop());
beforeEach(() => dispatch.simulators.clear());

const collection = (name: string) => dispatch.database.client.db(dispatch.database.name).collection(name);

test("a notification that was left unfinished is finished", async () => {
  const { project, send, partition, final } = dispatch;
  const projectId = await project();
  const id = await send(projectId);
  await partition(projectId, id, [devices(2), devices(1)]);
  const first = await final(projectId, id);
  // The state after a crash between the last row and the check for the end. Only the sweep can find it.
  await collection("notifications").updateOne(
    { _id: id as never },
    { $unset: { end: "" }, $set: { step: "delivering", status: "sending", nextAt: new Date(0) } },
  );
  const second = await final(projectId, id);
  expect({ ...second, completed_at: "" }).toEqual({ ...first, completed_at: "" });
});

test("a waiting batch is stored even if the process died before it could be", async () => {
  const { project, send, partition, final, rows, simulators, pass } = dispatch;
  const projectId = await project();
  const id = await send(projectId);
  simulators.script([{ provider: "apns", tokenPrefix: "503", times: 1, status: 503 }]);
  await partition(projectId, id, [[device("503")]]);
  await eventually(async () => expect(await rows(id)).toMatchObject([{ state: "final" }, { state: "waiting" }]));
  const [, child] = await rows(id);
  // The state before the child row was stored.
  const { devices: waiting, dueAt, notBefore } = child ?? {};
  await collection("deliveries").deleteOne({ _id: child?._id as never });
  await collection("deliveries").updateOne(
    { _id: `${id}/0/0` as never },
    {
      $set: {
        state: "settled",
        child: { devices: waiting, dueAt, notBefore, paused: false },
        childSize: 1,
        dueAt: new Date(0),
      },
    },
  );
  await eventually(async () => expect(await rows(id)).toMatchObject([{ state: "final" }, { state: "waiting" }]));
  pass(60_000);
  expect(await final(projectId, id)).toMatchObject({ counts: { devices: 1, accepted: 1 } });
});

test("a crash during the push of a waiting batch is a possible repeat, counted once", async () => {
  const { project, send, partition, final, rows, simulators, pass, fate, deliveries } = dispatch;
  const projectId = await project();
  const id = await send(projectId);
  simulators.script([{ provider: "apns", tokenPrefix: "500", times: 1, status: 500 }]);
  const one = device("500");
  await partition(projectId, id, [[one]]);
  await eventually(async () => expect(await rows(id)).toMatchObject([{ state: "final" }, { state: "waiting" }]));
  fate.crashes = 1;
  pass(60_000);
  expect(await final(projectId, id)).toMatchObject({ counts: { devices: 1, accepted: 1 } });
  expect(await deliveries(projectId, id)).toMatchObject([{ attempts: 2, possible_repeat: true }]);
  expect(simulators.pushes({ token: one.token, status: 200 })).toHaveLength(2);
});

test("credentials follow a rotation of the master key", async () => {
  const { project, database, config } = dispatch;
  const projectId = await project();
  const db = database.client.db(database.name);
  const [old] = config.HERALD_DISPATCH_MASTER_KEYS;
  const fresh = parseMasterKeys(`m2:${randomBytes(32).toString("base64")}`);
  if ("problem" in fresh) throw new Error(fresh.problem);
  const [second] = fresh.keys;
  const rotating: MasterKeys = [second, old];
  const before = await createCredentialStore(db, [old]).find(projectId, "apns");
  const log = createLogger({ service: "test", level: "silent" });
  const error = vi.spyOn(log, "error");
  await createCredentialStore(db, rotating).rotate(log);
  expect(error).not.toHaveBeenCalled();
  const rotated = createCredentialStore(db, [second]);
  const after = await rotated.find(projectId, "apns");
  expect(after?.secrets.keyId).toBe("m2");
  expect(after && (await rotated.open(after))).toMatchObject({ key_id: "ABCDEFGHIJ" });
  expect(after?.version).toBe(before?.version);
  await createCredentialStore(db, [old]).rotate(log);
  expect(error).toHaveBeenCalledWith({ kind: "credentials", missing: ["m2"] }, expect.stringContaining("master keys"));
});
