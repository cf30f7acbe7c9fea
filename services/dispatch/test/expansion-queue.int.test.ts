import { lastMessage, publish } from "@herald/bus";
import { ExpandedV1, ExpandV1, type NotificationId, type ProjectId } from "@herald/contracts";
import { eventually } from "@herald/testing";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type DispatchTest, startDispatchTest } from "./dispatch-fixture.ts";

const max = 32;
let dispatch: DispatchTest;
beforeAll(async () => {
  dispatch = await startDispatchTest();
});
afterAll(() => dispatch.stop());

/** The notifications whose expansion was commanded. The commands stay in the stream, because no registry runs here. */
const commanded = async (projectId: ProjectId, ids: readonly NotificationId[]): Promise<NotificationId[]> => {
  const found = await Promise.all(
    ids.map((notificationId) => {
      const subject = ExpandV1.subject({ projectId, notificationId, page: 0 } as ExpandV1);
      return lastMessage(dispatch.bus, "PUSH_CMD", subject, ExpandV1);
    }),
  );
  return ids.filter((_, at) => found[at] !== undefined);
};

const collection = () =>
  dispatch.database.client
    .db(dispatch.database.name)
    .collection<{ _id: string; step?: string; nextAt?: Date }>("notifications");
const stored = (ids: readonly string[]) =>
  collection()
    .find({ _id: { $in: [...ids] } })
    .toArray();

/** Ends an expansion without devices, as registry does. */
const end = (projectId: ProjectId, notificationId: NotificationId) =>
  publish(
    dispatch.bus,
    ExpandedV1,
    { projectId, notificationId, n: 0, batches: 0, devices: 0, unmatched: [] },
    { id: `${notificationId}/expanded` },
  );

test("a project has a limited number of expansions at a time, the next begins when one ends, and no other project waits", async () => {
  const { project, send, expansion, final } = dispatch;
  const [noisy, quiet] = [await project(), await project()];
  const ids: NotificationId[] = [];
  for (let n = 0; n < max + 8; n++) ids.push(await send(noisy));
  await eventually(async () => expect(await stored(ids)).toHaveLength(ids.length));
  await eventually(async () =>
    expect((await stored(ids)).filter(({ step }) => step === "expanding")).toHaveLength(max),
  );
  expect(await commanded(noisy, ids)).toHaveLength(max);
  const waiting = (await stored(ids)).filter(({ step }) => step === "accepted").map(({ _id }) => _id);
  // The sweep need not check notifications that only wait for their turn.
  for (const { nextAt } of await stored(waiting)) expect(nextAt).toBeUndefined();

  const other = await send(quiet);
  await expansion(quiet, other);

  const [ended] = await commanded(noisy, ids);
  if (ended === undefined) throw new Error("nothing was commanded");
  await end(noisy, ended);
  await final(noisy, ended);
  const [oldest] = waiting.toSorted();
  await eventually(async () => expect(await commanded(noisy, ids)).toContain(oldest));
  expect(await commanded(noisy, ids)).toHaveLength(max + 1);
  await Promise.all(ids.map((id) => end(noisy, id)));
  await Promise.all(ids.map((id) => final(noisy, id)));
});

test("a crash after the command and before it was stored commands it again, and it ends once", async () => {
  const { project, send, expansion, final } = dispatch;
  const projectId = await project();
  const id = await send(projectId);
  await expansion(projectId, id);
  await eventually(async () => expect(await stored([id])).toMatchObject([{ step: "expanding" }]));
  await collection().updateOne({ _id: id }, { $set: { step: "accepted", status: "accepted" }, $unset: { nextAt: "" } });
  // The next expansion of the project that ends starts this one.
  const next = await send(projectId);
  await expansion(projectId, next);
  await end(projectId, next);
  await eventually(async () => expect(await stored([id])).toMatchObject([{ step: "expanding" }]));
  await end(projectId, id);
  for (const one of [id, next]) await final(projectId, one);
  expect(await stored([id])).not.toMatchObject([{ step: expect.anything() }]);
});
