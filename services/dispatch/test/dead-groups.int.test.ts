import { randomUUID } from "node:crypto";
import { publish } from "@herald/bus";
import { type GroupedSend, type NotificationId, SendGroupV1 } from "@herald/contracts";
import { eventually, readStream } from "@herald/testing";
import { describe, expect, test } from "vitest";
import { rootBatchId } from "../src/domain/batch.ts";
import { settleRow } from "../src/domain/settle-row.ts";
import { type Claim, claimOf, deliveryCollection } from "../src/stores/delivery-document.ts";
import { createSmallSendStore } from "../src/stores/small-send-store.ts";
import { deadLetterActions, raw } from "./dead-letters-fixture.ts";
import { device, devices } from "./dispatch-fixture.ts";
import { useSendGroups } from "./send-groups-fixture.ts";
import { endOne, insertOne } from "./small-sends-fixture.ts";

// One push hangs until this timeout, and the stop waits for it.
const settings = { HERALD_DISPATCH_REQUEST_TIMEOUT: "5s" };
const { dispatch, sendsTo, groupOf, put, known, eventsOf, pushesTo } = useSendGroups(settings);
const { die, started, expanded } = deadLetterActions(dispatch);

describe("a group that is given up", () => {
  test("ends sends that had begun with an internal failure, and expands the others like large sends", async () => {
    const projectId = await dispatch().project();
    const [begun, untouched] = [device(), device()];
    known("token:begun", [begun]);
    dispatch().simulators.script([{ provider: "apns", hang: true }]);
    const group = groupOf(sendsTo(projectId, ["token:begun"]));
    const { seq: sequence } = await put(group);
    const [id = "ntf_" as NotificationId] = group.ids;
    const row = await eventually(async () => {
      const [found] = await dispatch().rows(id);
      if (!found) throw new Error("it has no row yet");
      return found;
    });
    known("token:untouched", [untouched]);
    const other = groupOf(sendsTo(projectId, ["token:untouched"]));
    const sends = [...group.sends, ...other.sends];
    await die(
      "dispatch-send-groups",
      SendGroupV1,
      { groupId: group.groupId, sends },
      {
        publishedAt: new Date(row.claim?.at ?? 0),
        sequence,
        body: { groupId: group.groupId, sends: [...sends, { no: "send" }] },
      },
    );
    expect(await dispatch().final(projectId, id)).toMatchObject({ counts: { failed: 1 }, failures: { internal: 1 } });
    expect(await dispatch().expansion(projectId, other.ids[0] ?? "ntf_")).toMatchObject({
      targets: ["token:untouched"],
    });
    // An operator replays it: what has ended stays as it is.
    dispatch().simulators.clear();
    const before = await dispatch().get(projectId, id);
    await put(group, randomUUID());
    await eventually(async () => expect(await readStream(dispatch().broker, "PUSH_SEND")).toEqual([]));
    expect(await dispatch().get(projectId, id)).toEqual(before);
    expect(pushesTo([begun])).toEqual([0]);
  });

  test("publishes what has ended, and leaves what has messages of its own or of another group", async () => {
    const { database } = dispatch();
    const db = database.client.db(database.name);
    const [store, rows] = [createSmallSendStore(db), deliveryCollection(db)];
    const projectId = await dispatch().project();
    const [publishedAt, now] = [new Date(), dispatch().now()];
    const [ours, theirs] = [claimOf({ publishedAt, sequence: 7 }), claimOf({ publishedAt, sequence: 8 })];
    /** As a process stores it before it pushes. */
    const begin = async (claim: Claim) => {
      const [send = {} as GroupedSend] = sendsTo(projectId, ["token:begun"]);
      const { notificationId } = send;
      const batchId = rootBatchId(notificationId, 0);
      const batch = { batchId, projectId, notificationId, lane: "direct", platform: "ios" } as const;
      const batches = [{ ...batch, devices: [device()] }];
      return { send, batchId, ...(await insertOne(store, { send, batches, unmatched: [] }, claim, now)) };
    };
    const [ended, apart, ofTheirs] = [await begin(ours), await begin(ours), await begin(theirs)];
    // Its process died before it published the end.
    const outcomes = [{ kind: "accepted" }] as const;
    const [run] = ended.runs;
    if (!run) throw new Error("it has no batch");
    const times = { startedAt: now, now, expiresAt: new Date(now.getTime() + 60_000) };
    const settlement = settleRow({
      ...{ devices: run.devices, outcomes, cancelled: false, keepDevices: false, random: 0 },
      ...times,
    });
    await endOne(store, ended.document, [{ run, settlement }], now);
    // Released, after processes had died over the group.
    await store.moveToDeliveries(projectId, apart.send.notificationId);
    const dueAt = new Date(now.getTime() + 3_600_000);
    await rows.updateOne({ _id: apart.batchId }, { $set: { state: "waiting", dueAt }, $unset: { claim: "" } });
    // Registry has partitioned it, and its batch is still in a queue.
    const large = await started();
    await expanded(large.projectId, large.id, 1, 2);
    await eventually(async () =>
      expect(await dispatch().get(large.projectId, large.id)).toMatchObject({ counts: { devices: 2 } }),
    );
    const asSend: GroupedSend = { ...ended.send, projectId: large.projectId, notificationId: large.id };

    const groupId = ended.send.notificationId;
    const sends = [apart.send, ofTheirs.send, asSend, ended.send];
    await die("dispatch-send-groups", SendGroupV1, { groupId, sends }, { publishedAt, sequence: 7 });
    await eventually(async () =>
      expect(new Set(await eventsOf(projectId, groupId))).toEqual(
        new Set(["notification.accepted", "delivery.accepted", "notification.completed"]),
      ),
    );
    await eventually(async () => expect(await eventsOf(projectId, apart.send.notificationId)).toHaveLength(1));
    expect(await rows.findOne({ _id: apart.batchId })).toMatchObject({ state: "waiting" });
    expect(await store.find(ofTheirs.send)).toMatchObject({ document: { step: "sending", claim: { open: true } } });
    await dispatch().partition(large.projectId, large.id, [devices(2)], { of: 1 });
    expect(await dispatch().final(large.projectId, large.id)).toMatchObject({ counts: { accepted: 2 } });
  });

  test("does not exist because one of its sends is malformed: that one becomes a dead letter alone", async () => {
    const projectId = await dispatch().project();
    const good = device();
    known("token:good", [good]);
    const group = groupOf(sendsTo(projectId, ["token:good"]));
    await publish(
      dispatch().bus,
      raw(`push.send.v1.group.${group.groupId}`),
      { groupId: group.groupId, sends: [{ notificationId: 1 }, ...group.sends] },
      { id: randomUUID() },
    );
    expect(await dispatch().final(projectId, group.ids[0] ?? "ntf_")).toMatchObject({ counts: { accepted: 1 } });
    const letters = await eventually(async () => {
      const found = await readStream(dispatch().broker, "PUSH_DLQ", "push.dlq.v1.dispatch-send-groups");
      const ofGroup = found.filter(({ body }) => body === JSON.stringify({ notificationId: 1 }));
      expect(ofGroup).toHaveLength(1);
      return found;
    });
    expect(letters.filter(({ body }) => body.includes(group.groupId))).toEqual([]);
  });
});
