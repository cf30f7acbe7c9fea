import { publish, sendRequest } from "@herald/bus";
import { deliveryRequests, type ProjectId, type Recipient, UserErasedV1 } from "@herald/contracts";
import { eventually } from "@herald/testing";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { type DispatchTest, device, devices, startDispatchTest } from "./dispatch-fixture.ts";

let dispatch: DispatchTest;
let projectId: ProjectId;
beforeAll(async () => {
  dispatch = await startDispatchTest();
});
afterAll(() => dispatch.stop());
beforeEach(async () => {
  projectId = await dispatch.project();
  dispatch.moved.clear();
});

const of = (userId: string, tag = ""): Recipient => ({ ...device(tag), userId });
const sorted = (all: Recipient[]) => all.sort((one, other) => (one.id < other.id ? -1 : 1));

describe("what waited", () => {
  test("is not sent to a device that moved meanwhile, and is to the others", async () => {
    const [staying, moving] = [of("ann", "aa"), of("ann", "bb")];
    const batch = sorted([staying, moving]);
    dispatch.moved.add(moving.id);
    const id = await dispatch.send(projectId, {}, { targets: ["user:ann"] });
    // The batch waited in its queue for more than two seconds, so dispatch asks registry again.
    dispatch.clock.ahead += 5_000;
    await dispatch.partition(projectId, id, [batch], { lane: "direct" });
    const final = await dispatch.final(projectId, id);
    expect(final.counts).toMatchObject({ devices: 2, accepted: 1, skipped: 1 });
    expect(final.skips).toEqual({ moved: 1 });
    const rows = await dispatch.deliveries(projectId, id);
    expect(rows.find(({ device_id }) => device_id === moving.id)).toMatchObject({
      status: "skipped",
      reason: "moved",
      user_id: "ann",
    });
    dispatch.clock.ahead -= 5_000;
  });

  test("returns the users whose devices it was sent to", async () => {
    const batch = sorted([of("ann"), of("bob"), ...devices(2)]);
    const id = await dispatch.send(projectId);
    await dispatch.partition(projectId, id, [batch]);
    await dispatch.final(projectId, id);
    const deliveries = batch.map((one) => ({ notificationId: id, deviceId: one.id }));
    const { users } = await sendRequest(dispatch.bus, deliveryRequests.users, { projectId, deliveries });
    expect(users).toEqual(batch.map(({ userId }) => userId ?? null));
  });
});

describe("an erased user", () => {
  test("is removed from notifications, rows and waiting batches; a repeat and a replay change nothing", async () => {
    const batch = sorted([of("ann"), of("bob")]);
    const alone = await dispatch.send(projectId, {}, { title: "For Ann", targets: ["user:ann"] });
    const both = await dispatch.send(projectId, {}, { title: "For both", targets: ["user:ann", "user:bob"] });
    await dispatch.partition(projectId, alone, [[batch.find(({ userId }) => userId === "ann") ?? device()]], {
      lane: "direct",
    });
    await dispatch.partition(projectId, both, [batch], { lane: "direct" });
    for (const id of [alone, both]) await dispatch.final(projectId, id);
    const at = new Date().toISOString();
    const erase = (id: string) =>
      publish(dispatch.bus, UserErasedV1, { project_id: projectId, user_id: "ann", at }, { id });
    await erase("first");
    await eventually(async () => {
      expect(await dispatch.get(projectId, alone)).toMatchObject({ title: "[erased]" });
      expect((await dispatch.deliveries(projectId, both)).map(({ user_id }) => user_id ?? null)).toEqual(
        batch.map(({ userId }) => (userId === "bob" ? "bob" : null)),
      );
    });
    expect(await dispatch.get(projectId, both)).toMatchObject({ title: "For both", counts: { accepted: 2 } });
    // A redelivered erasure must not erase a user who came back.
    const later = await dispatch.send(projectId, {}, { title: "Welcome back", targets: ["user:ann"] });
    await dispatch.partition(projectId, later, [[of("ann")]], { lane: "direct" });
    await dispatch.final(projectId, later);
    await erase("second");
    const marker = await dispatch.send(projectId, {}, { targets: ["user:marker"] });
    await dispatch.partition(projectId, marker, [[of("marker")]], { lane: "direct" });
    await dispatch.final(projectId, marker);
    const now = new Date().toISOString();
    await publish(dispatch.bus, UserErasedV1, { project_id: projectId, user_id: "marker", at: now }, { id: "third" });
    await eventually(async () => expect(await dispatch.get(projectId, marker)).toMatchObject({ title: "[erased]" }));
    expect(await dispatch.get(projectId, later)).toMatchObject({ title: "Welcome back" });
    expect((await dispatch.deliveries(projectId, later)).map(({ user_id }) => user_id)).toEqual(["ann"]);
  });
});
