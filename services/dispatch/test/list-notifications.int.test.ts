import { sendRequest } from "@herald/bus";
import {
  type ListRequest,
  type Notification,
  NotificationFilter,
  type NotificationId,
  notificationRequests,
  type ProjectId,
} from "@herald/contracts";
import { eventually } from "@herald/testing";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type DispatchTest, day, device, startDispatchTest } from "./dispatch-fixture.ts";

let dispatch: DispatchTest;
let projectId: ProjectId;
const mine: NotificationId[] = [];

const list = async (
  filter: NotificationFilter & { userId?: string } = {},
  request: Partial<ListRequest> = {},
): Promise<Notification[]> => {
  const page = { by: "page", page: 1, perPage: 100, ...request } as ListRequest;
  const found = await sendRequest(dispatch.bus, notificationRequests.list, { projectId, ...filter, page });
  if ("pagination" in found) expect(found.pagination.count).toBe(found.data.length);
  return found.data;
};

beforeAll(async () => {
  dispatch = await startDispatchTest();
  const { project, send, partition, cancel, final, rows, simulators, now } = dispatch;
  projectId = await project();
  const sending = async (
    ...[change, content]: Parameters<typeof send> extends [unknown, ...infer Rest] ? Rest : []
  ) => {
    const id = await send(projectId, change, content);
    mine.push(id);
    return id;
  };
  const sendAt = new Date(now().getTime() + day).toISOString();

  const completed = await sending({}, { targets: ["user:u_1"] });
  await partition(projectId, completed, [[device()]]);
  await final(projectId, completed);
  const expired = await sending({ expiresAt: new Date(now().getTime() - 1_000).toISOString() });
  await partition(projectId, expired, [[device()]]);
  expect(await final(projectId, expired)).toMatchObject({ status: "expired" });
  await sending({ sendAt }, { kind: "news", labels: { campaign: "spring/1", team: "a" } });
  const never = await sending({ sendAt }, { kind: "news", labels: { campaign: "fall" }, targets: ["user:u_2"] });
  await eventually(() => cancel(projectId, never));
  const proposal = { limit: 1_000, devices: 5_000, sender: { id: "root" } } as const;
  await sending({ proposal });
  const begun = await sending();
  simulators.script([{ provider: "apns", status: 503, headers: { "retry-after": "600" } }]);
  await partition(projectId, begun, [[device()]], { of: 2 });
  await eventually(async () => expect(await rows(begun)).toMatchObject([{}, { state: "waiting" }]));
  await cancel(projectId, begun);
  // More than a project may expand at a time, so some wait for their turn.
  for (let count = 0; count < 35; count++) await sending();
  await eventually(async () => {
    const all = await list();
    expect(all).toHaveLength(mine.length);
    const statuses = all.map(({ status }) => status);
    expect(statuses.filter((status) => status === "sending")).toHaveLength(31);
    expect(statuses.filter((status) => status === "accepted")).toHaveLength(4);
  });
  const all = await list();
  for (const status of ["sending", "accepted"]) {
    const one = all.find((each) => each.status === status);
    const by = { id: "root" } as const;
    if (one) await sendRequest(dispatch.bus, notificationRequests.pause, { projectId, notificationId: one.id, by });
  }
});
afterAll(() => dispatch.stop());

describe("a status lists the notifications that are shown with it", () => {
  test.each(NotificationFilter.shape.status.unwrap().options)("%s", async (status) => {
    const wanted = (await list()).filter((one) => one.status === status).map(({ id }) => id);
    expect(wanted).not.toEqual([]);
    expect((await list({ status })).map(({ id }) => id)).toEqual(wanted);
    const walk = { by: "key", after: "", newestFirst: true } as const;
    expect((await list({ status }, walk)).map(({ id }) => id)).toEqual(wanted.toReversed());
  });
});

test("the index of statuses has all but the completed ones", async () => {
  const { client, name } = dispatch.database;
  const stored = await client.db(name).collection("notifications").find({ projectId }).toArray();
  expect(stored).toHaveLength(mine.length);
  expect(stored.filter(({ byStatus, status }) => (byStatus === true) === (status === "completed"))).toEqual([]);
});

test("a time range and a user combine with a status", async () => {
  const [first] = await list();
  if (!first) throw new Error("there are some");
  const after = new Date(Date.parse(first.created_at) + 1).toISOString();
  expect(await list({ status: "completed", userId: "u_1" })).toMatchObject([{ id: first.id }]);
  expect(await list({ status: "expired", userId: "u_1" })).toEqual([]);
  expect(await list({ status: "completed" }, { createdAfter: after })).toEqual([]);
  expect(await list({ status: "completed" }, { createdBefore: after })).toHaveLength(1);
  expect(await list({}, { createdAfter: after })).toHaveLength(mine.length - 1);
});

test("a kind, labels, a status, a user and a time range combine", async () => {
  const scheduled = await list({ kind: "news", status: "scheduled" });
  expect(scheduled).toMatchObject([{ labels: { campaign: "spring/1", team: "a" } }]);
  const ids = async (...asked: Parameters<typeof list>) => (await list(...asked)).map(({ id }) => id);
  const [spring] = scheduled.map(({ id }) => id);
  const [fall] = await ids({ label: "campaign:fall" });
  // Ids of one millisecond are in no order.
  const both = [spring, fall].toSorted();
  expect(await ids({ kind: "news" })).toEqual(both);
  expect(await ids({ kind: "news" }, { newestFirst: true })).toEqual(both.toReversed());
  expect(await ids({ label: "campaign:spring/1" })).toEqual([spring]);
  expect(await ids({ label: "team:a", kind: "news" })).toEqual([spring]);
  expect(await ids({ label: "team:a", kind: "other" })).toEqual([]);
  expect(await ids({ label: "campaign:fall", userId: "u_2", status: "cancelled" })).toEqual([fall]);
  expect(await ids({ label: "campaign:spring/1", userId: "u_2" })).toEqual([]);
  expect(await ids({ kind: "news" }, { createdAfter: "2000-01-01T00:00:00Z" })).toEqual(both);
  expect(await ids({ kind: "news" }, { createdBefore: "2000-01-01T00:00:00Z" })).toEqual([]);
  expect(await ids({ label: "campaign:spring" })).toEqual([]);
});

test("a state that Herald sends to a token that came late is in no list, and is found by its id", async () => {
  const activity = { id: "order", version: 1, event: "join", content_state: {}, timestamp: 1 } as const;
  const id = await dispatch.send(projectId, {}, { targets: ["all"], push_type: "liveactivity", activity });
  // A cancelled one is stored.
  expect(await eventually(() => dispatch.cancel(projectId, id))).toMatchObject({ id, status: "cancelled" });
  expect(await sendRequest(dispatch.bus, notificationRequests.get, { projectId, notificationId: id })).toMatchObject({
    id,
  });
  expect((await list()).map((one) => one.id)).not.toContain(id);
  expect(await list({ push_type: "liveactivity" })).toEqual([]);
});
