import { randomUUID } from "node:crypto";
import { sendRequest } from "@herald/bus";
import { type GroupedSend, type NotificationId, recipientRequests } from "@herald/contracts";
import { eventually, readStream } from "@herald/testing";
import { describe, expect, test } from "vitest";
import { device, devices } from "./dispatch-fixture.ts";
import { useSendGroups } from "./send-groups-fixture.ts";

const { dispatch, answers, sendsTo, groupOf, put, known, acceptAll, sendsOf, eventsOf, pushesTo } = useSendGroups();

describe("a group that comes again", () => {
  test("after a crash between push and outcome sends only what has none, marked as a possible repeat", async () => {
    const projectId = await dispatch().project();
    const some = devices(2);
    dispatch().fate.crashes = 1;
    const ids = await acceptAll(sendsOf(projectId, some));
    for (const id of ids) expect(await dispatch().final(projectId, id)).toMatchObject({ counts: { accepted: 1 } });
    expect(pushesTo(some).sort()).toEqual([1, 2]);
    const marked = await Promise.all(ids.map((id) => dispatch().deliveries(projectId, id)));
    const repeated = pushesTo(some).map((times) => times === 2);
    expect(marked.flat().map(({ possible_repeat }) => possible_repeat)).toEqual(repeated);
    await eventually(async () => {
      for (const id of ids) expect(new Set(await eventsOf(projectId, id)).size).toBe(3);
    });
  });

  test("after a crash sends a recipient's texts with the values that it had", async () => {
    const projectId = await dispatch().project();
    const ann = device("00", { userId: "ann" });
    known("user:ann", [ann]);
    dispatch().fate.crashes = 1;
    const [send] = sendsTo(projectId, [""]);
    const [id = "ntf_" as NotificationId] = await acceptAll([
      {
        ...(send as GroupedSend),
        content: { title: "Hi {{ name }}", targets: [], recipients: { kind: "user", lines: 2 } },
        personal: {
          texts: JSON.stringify({ title: { nodes: ["Hi ", { output: { from: { path: ["name"] }, filters: [] } }] } }),
          locale: "en",
          values: {},
        },
        recipients: [
          [
            { n: 1, key: "ann", values: { name: "Ann" } },
            { n: 2, key: "gone", values: { name: "Gone" } },
          ],
        ],
      },
    ]);
    expect(await dispatch().final(projectId, id)).toMatchObject({ counts: { devices: 1, accepted: 1 }, unmatched: [] });
    const pushes = dispatch()
      .simulators.pushes({ status: 200 })
      .filter(({ token }) => token === ann.token);
    expect(pushes).toHaveLength(2);
    for (const { payload } of pushes) expect(JSON.stringify(payload)).toContain("Hi Ann");
    const asked = { projectId, notificationId: id };
    expect((await sendRequest(dispatch().bus, recipientRequests.get, asked)).recipients).toMatchObject({
      ...{ lines_stored: 2, recipients: 2, processed: 2, unmatched: 1, complete: true },
    });
    const stored = await dispatch()
      .database.client.db(dispatch().database.name)
      .collection("notifications")
      .findOne({ projectId });
    expect(JSON.stringify(stored)).not.toMatch(/gone|"Ann"/);
  });

  test("in the same process, because the bus was unavailable between outcome and event: both are published, and one part waits", async () => {
    const projectId = await dispatch().project();
    const [sent, waiting] = [device("a0"), device("503")];
    known("token:sent", [sent]);
    known("token:waiting", [waiting]);
    dispatch().simulators.script([
      { provider: "apns", tokenPrefix: "503", status: 503, headers: { "retry-after": "600" } },
      { provider: "apns", tokenPrefix: "a0", delayMs: 2_500 },
    ]);
    const group = groupOf(sendsTo(projectId, ["token:sent"]));
    const [send] = group.sends;
    if (send) send.content.targets = ["token:sent", "token:waiting"];
    await put(group);
    const [id = "ntf_" as NotificationId] = group.ids;
    // Two sends have begun, and APNs takes seconds for the first.
    await eventually(async () => expect((await dispatch().rows(id)).length).toBeGreaterThanOrEqual(2));
    await dispatch().natsProxy.cut();
    await eventually(async () => expect(await dispatch().rows(id)).toMatchObject([{ state: "final" }, {}, {}]));
    expect(await eventsOf(projectId, id)).toEqual([]);
    await dispatch().natsProxy.heal();
    await eventually(async () => {
      expect(await readStream(dispatch().broker, "PUSH_SEND")).toEqual([]);
      expect(new Set(await eventsOf(projectId, id))).toEqual(new Set(["notification.accepted", "delivery.accepted"]));
    });
    expect(pushesTo([sent])).toEqual([1]);
    expect(await dispatch().get(projectId, id)).toMatchObject({ counts: { accepted: 1, pending: 1 } });
  });

  test("after it was sent, in another message, sends nothing and keeps its result", async () => {
    const projectId = await dispatch().project();
    const one = device();
    known(one.id, [one]);
    const group = groupOf(sendsTo(projectId, [one.id]));
    await put(group);
    const [id = "ntf_" as NotificationId] = group.ids;
    const before = await dispatch().final(projectId, id);
    // Its audience has changed since.
    known(one.id, devices(3));
    await put(group, randomUUID());
    await eventually(async () => expect(await readStream(dispatch().broker, "PUSH_SEND")).toEqual([]));
    expect(await dispatch().final(projectId, id)).toEqual(before);
    expect(pushesTo([one])).toEqual([1]);
    expect(await dispatch().rows(id)).toHaveLength(1);
  });

  test("after a crash keeps the devices of a send that has begun, although it would be a large one by now", async () => {
    const projectId = await dispatch().project();
    const some = devices(90);
    known("user:many", some);
    dispatch().simulators.script([{ provider: "apns", tokenPrefix: "00", delayMs: 200 }]);
    dispatch().fate.crashes = 1;
    const [id = "ntf_" as NotificationId] = await acceptAll(sendsTo(projectId, ["user:many"]));
    await eventually(async () => expect(await dispatch().rows(id)).toHaveLength(1));
    answers().registry.set("user:many", "large");
    expect(await dispatch().final(projectId, id)).toMatchObject({ counts: { devices: 90, accepted: 90 } });
    const all = await dispatch().deliveries(projectId, id);
    expect(all.every(({ possible_repeat }) => possible_repeat)).toBe(true);
    await eventually(async () => expect(await eventsOf(projectId, id)).toContain("delivery.accepted"));
  });

  test("while the database was unavailable: every send is final afterwards, and none is pushed twice", async () => {
    const projectId = await dispatch().project();
    const some = devices(20);
    await dispatch().mongoProxy.cut();
    const ids = await acceptAll(sendsOf(projectId, some));
    await dispatch().mongoProxy.heal();
    for (const id of ids) expect(await dispatch().final(projectId, id)).toMatchObject({ counts: { accepted: 1 } });
    expect(pushesTo(some)).toEqual(some.map(() => 1));
  });
});
