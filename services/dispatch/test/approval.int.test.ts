import { handleRequest, lastMessage, publish, type RequestListener, sendRequest } from "@herald/bus";
import {
  audienceRequests,
  ExpandV1,
  maxProposedMs,
  NotificationApprovedV1,
  type NotificationContent,
  type NotificationId,
  NotificationProposedV1,
  NotificationRejectedV1,
  newOperatorId,
  newTokenId,
  notificationRequests,
  type ProjectId,
  type Proposal,
  recipientRequests,
  SendV1,
} from "@herald/contracts";
import { HeraldError } from "@herald/kit";
import { eventually } from "@herald/testing";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { notificationCollection } from "../src/stores/notification-document.ts";
import { type DispatchTest, day, devices, startDispatchTest } from "./dispatch-fixture.ts";

const now = new Date();
const owner = newOperatorId(now);
const sender = { id: newTokenId(now) };
const by = { id: newOperatorId(now), name: "Maria Lopez" };
const proposal: Proposal = { limit: 1_000, devices: 5_000, sender, owner };

let dispatch: DispatchTest;
let answering: RequestListener;
/** The audience, as registry estimates it; undefined: registry is unavailable. */
let audience: number | undefined;
let projectId: ProjectId;
beforeAll(async () => {
  dispatch = await startDispatchTest();
  answering = handleRequest(dispatch.bus, audienceRequests.size, async () => {
    if (audience === undefined) throw new HeraldError("database-unavailable", "no database");
    return { devices: audience };
  });
});
afterAll(async () => {
  await answering.stop();
  await dispatch.stop();
});
beforeEach(async () => {
  audience = 5_000;
  projectId = await dispatch.project();
});
afterEach(() => {
  dispatch.clock.ahead = 0;
});

const propose = async (change: Partial<SendV1> = {}, content: Partial<NotificationContent> = {}) => {
  const id = await dispatch.send(projectId, { proposal, ...change }, content);
  await eventually(async () => expect((await stored(id))?.step).toBe("approval"));
  return id;
};
const stored = (id: NotificationId) =>
  notificationCollection(dispatch.database.client.db(dispatch.database.name)).findOne({ _id: id });
const approve = (notificationId: NotificationId, who: { id: string; name?: string } = by, reason?: string) =>
  sendRequest(dispatch.bus, notificationRequests.approve, { projectId, notificationId, by: who as typeof by, reason });
const reject = (notificationId: NotificationId, reason?: string) =>
  sendRequest(dispatch.bus, notificationRequests.reject, { projectId, notificationId, by, reason });
const commanded = (id: NotificationId) => {
  const subject = ExpandV1.subject({ projectId, notificationId: id, page: 0 } as ExpandV1);
  return lastMessage(dispatch.bus, "PUSH_CMD", subject, ExpandV1);
};

test("a proposed notification is sent once another person than its sender approves it, and lives from then on", async () => {
  const { partition, final, lastEvent, get } = dispatch;
  const id = await propose({}, { ttl: 86_400 });
  expect(await get(projectId, id)).toMatchObject({
    status: "proposed",
    approval: { status: "proposed", limit: 1_000, devices: 5_000, sender },
  });
  await eventually(async () =>
    expect(await lastEvent(projectId, NotificationProposedV1)).toMatchObject({
      devices: 5_000,
      limit: 1_000,
      by: sender,
    }),
  );
  for (const who of [sender, { id: owner }])
    await expect(approve(id, who)).rejects.toMatchObject({ code: "forbidden" });
  // Neither its message again nor the sweep begins it.
  await publish(dispatch.bus, SendV1, { ...(await sendOf(id)), proposal }, { id: `${id}/again` });
  dispatch.pass(60 * 3_600_000);
  await eventually(async () => expect((await stored(id))?.step).toBe("approval"));
  expect(await commanded(id)).toBeUndefined();

  const at = dispatch.now().getTime();
  expect(await approve(id, by, "checked")).toMatchObject({
    approval: { status: "approved", by, reason: "checked", sender },
  });
  // A repeat changes nothing.
  expect(await approve(id)).toMatchObject({ approval: { reason: "checked" } });
  await expect(reject(id)).rejects.toMatchObject({ code: "notification-started" });
  const command = await dispatch.expansion(projectId, id);
  expect(Math.abs(Date.parse(command.expiresAt) - at - day)).toBeLessThan(60_000);
  await partition(projectId, id, [devices(3)]);
  expect(await final(projectId, id)).toMatchObject({ status: "completed", counts: { accepted: 3 } });
  // The answer to the first may have been lost.
  expect(await approve(id)).toMatchObject({ status: "completed", approval: { reason: "checked" } });
  expect(await lastEvent(projectId, NotificationApprovedV1)).toMatchObject({
    notification_id: id,
    detail: "checked",
    by,
  });
});

/** The send as the gateway published it. */
const sendOf = async (id: NotificationId): Promise<SendV1> => {
  const { acceptedAt, content } = (await stored(id)) ?? {};
  const at = acceptedAt ?? now;
  return {
    ...{ projectId, notificationId: id, content: JSON.parse(content ?? "{}"), acceptedAt: at.toISOString() },
    expiresAt: new Date(at.getTime() + day).toISOString(),
  };
};

test("of an approval and a rejection at once, one is made", async () => {
  for (let round = 0; round < 5; round++) {
    const id = await propose();
    const [approved, rejected] = await Promise.allSettled([approve(id), reject(id)]);
    expect([approved.status, rejected.status].toSorted()).toEqual(["fulfilled", "rejected"]);
    const { status, approval } = await dispatch.get(projectId, id);
    expect([status, approval?.status]).toEqual(
      approved.status === "fulfilled"
        ? [expect.not.stringMatching("cancelled"), "approved"]
        : ["cancelled", "rejected"],
    );
  }
});

test("a rejected one is cancelled, with who and why, and so is one on which nobody decides in 72 hours", async () => {
  const { lastEvent } = dispatch;
  const [rejected, expired] = [await propose(), await propose()];
  const view = await reject(rejected, "the wrong link");
  expect(view).toMatchObject({ status: "cancelled", approval: { status: "rejected", by, reason: "the wrong link" } });
  expect(await lastEvent(projectId, NotificationRejectedV1)).toMatchObject({ reason: "requested", by });
  expect(await reject(rejected)).toMatchObject({ approval: { reason: "the wrong link" } });
  await expect(approve(rejected)).rejects.toMatchObject({ code: "notification-final" });
  dispatch.pass(maxProposedMs + 1_000);
  expect(await dispatch.final(projectId, expired)).toMatchObject({
    ...{ status: "cancelled", approval: { status: "expired" } },
    counts: { devices: 0 },
  });
  await eventually(async () =>
    expect(await lastEvent(projectId, NotificationRejectedV1)).toMatchObject({
      ...{ notification_id: expired, reason: "expired" },
    }),
  );
  expect([await commanded(rejected), await commanded(expired)]).toEqual([undefined, undefined]);
});

test("its sender may cancel it, and nobody may change it", async () => {
  const at = new Date(dispatch.now().getTime() + day).toISOString();
  const id = await propose({ sendAt: at }, { send_at: at });
  const change = { projectId, notificationId: id, change: { ttl: 60 } };
  await expect(sendRequest(dispatch.bus, notificationRequests.change, change)).rejects.toMatchObject({
    code: "notification-proposed",
  });
  expect(await dispatch.cancel(projectId, id)).toMatchObject({ status: "cancelled" });
  await expect(approve(id)).rejects.toMatchObject({ code: "notification-final" });
});

test("one with a time is sent at its time, or at once if that has passed", async () => {
  const at = new Date(dispatch.now().getTime() + day).toISOString();
  const [early, late] = [
    await propose({ sendAt: at }, { send_at: at }),
    await propose({ sendAt: at }, { send_at: at }),
  ];
  expect(await approve(early)).toMatchObject({ status: "scheduled", approval: { status: "approved" } });
  expect(await commanded(early)).toBeUndefined();
  dispatch.pass(day + 1_000);
  await dispatch.expansion(projectId, early);
  await approve(late);
  await dispatch.expansion(projectId, late);
});

test("an audience that has grown by more than a fifth, or that nobody knew, must be seen first", async () => {
  const [grown, unknown] = [await propose(), await propose({ proposal: { limit: 1_000, sender } })];
  audience = 6_001;
  await expect(approve(grown)).rejects.toMatchObject({ code: "audience-grew" });
  expect((await dispatch.get(projectId, grown)).approval).toMatchObject({ status: "proposed", devices: 6_001 });
  audience = 7_000;
  expect(await approve(grown)).toMatchObject({ approval: { status: "approved", devices: 6_001 } });
  audience = undefined;
  await expect(approve(unknown)).rejects.toMatchObject({ code: "database-unavailable" });
  audience = 40;
  await expect(approve(unknown)).rejects.toThrow("it reaches about 40 devices now, which was not known");
  expect(await approve(unknown)).toMatchObject({ approval: { status: "approved" } });
});

const linesOf = (count: number, first: number) => {
  const lines = Array.from({ length: count }, (_, at) => ({ n: first + at, key: `u${first + at}`, values: {} }));
  return { lines: JSON.stringify(lines), keys: JSON.stringify(lines.map(({ key }) => key)) };
};

test("an upload waits for approval once it is complete, unless it has few recipients", async () => {
  const content = { targets: [], recipients: { kind: "user", upload: true } } as unknown as NotificationContent;
  const [large, small] = [
    await propose({ proposal: { limit: 1_000, sender } }, content),
    await propose({ proposal: { limit: 1_000, sender } }, content),
  ];
  const append = (notificationId: NotificationId, recipients: number, firstLine: number, last: boolean) =>
    sendRequest(dispatch.bus, recipientRequests.append, {
      ...{ projectId, notificationId, kind: "user", firstLine, lastLine: firstLine + recipients - 1, last },
      ...{ recipients, refused: 0, duplicates: 0, errors: [] },
      ...linesOf(recipients, firstLine),
    });
  for (let chunk = 0; chunk < 20; chunk++) await append(large, 100, chunk * 100 + 1, false);
  await expect(approve(large)).rejects.toMatchObject({ code: "recipients-incomplete" });
  await append(large, 1, 2_001, true);
  await append(small, 10, 1, true);
  await eventually(async () =>
    expect(await dispatch.lastEvent(projectId, NotificationProposedV1)).toMatchObject({
      ...{ notification_id: large, devices: 2_001 },
    }),
  );
  await dispatch.expansion(projectId, small);
  expect(await dispatch.get(projectId, small)).not.toHaveProperty("approval");
  expect(await commanded(large)).toBeUndefined();
  await approve(large);
  await dispatch.expansion(projectId, large);
});
