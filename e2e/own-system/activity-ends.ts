import { eventually, expectStatus } from "@herald/testing";
import { beforeAll, beforeEach, expect, test } from "vitest";
import type { MovableClock } from "../harness/movable-clock.ts";
import type { Project } from "../harness/project.ts";
import { payloadOf } from "../harness/simulators.ts";
import type { System } from "../harness/system.ts";
import type { OwnSystem } from "./own-system.ts";

const hour = 3_600_000;
const minute = 60_000;
const app = "com.example.e2e";
const type = "OrderAttributes";

/** Moves the clock by days. */
export function testActivityEnds(own: () => OwnSystem): void {
  let clock: MovableClock;
  let system: System;
  let project: Project;
  beforeAll(async () => {
    ({ clock, system } = own());
    project = await system.project("Ends");
  });

  /** An activity that its app has started, and that ends in 7 hours. */
  let id: string;
  let ends: Date;
  let token: string;
  let made = 0;
  beforeEach(async () => {
    id = `order-${++made}`;
    ends = new Date(clock.now().getTime() + 7 * hour);
    const { device } = await project.register({});
    const card = await system.simulators.startInstance(app, type);
    token = card.token ?? "";
    const activity = {
      ...{ attributes_type: type, attributes: {}, content_state: { n: 1 }, start: false },
      ...{ targets: [device.id], ends_at: ends.toISOString() },
    };
    const { data } = expectStatus(await project.call(`PUT /activities/${id}`, { body: { activity } }), 202).body;
    // Else it may send to the token too, beside the join, and this push may come at any time.
    await project.final(data.notification_id);
    const body = { token: { token } };
    expectStatus(await project.call(`PUT /devices/${device.id}/tokens/activity/${id}`, { body }), 204);
    await eventually(async () => expect((await cardOf())?.shown).toHaveLength(2));
  });

  const afterEnd = (ms: number) => clock.set(new Date(ends.getTime() + ms));
  const cardOf = async () => (await system.simulators.instances(token))[0];
  const isEnded = () =>
    eventually(async () => expect(await cardOf()).toMatchObject({ state: "ended" }), { timeoutMs: 30_000 });
  const refuseEnds = () => system.simulators.script([{ provider: "apns", tokenPrefix: token, status: 503 }]);
  const refused = async () => {
    const pushes = await system.simulators.pushes({ token, status: 503 });
    return pushes.filter((push) => payloadOf(push).aps?.event === "end").length;
  };
  /** Moves the clock, and waits for another attempt. */
  const isRefusedAt = async (ms: number) => {
    const before = await refused();
    afterEnd(ms);
    await eventually(async () => expect(await refused()).toBeGreaterThan(before), { timeoutMs: 30_000 });
  };
  /** The notification of the end at `ends_at`. */
  const endOf = async () => {
    const { data } = expectStatus(await project.call(`GET /activities/${id}`), 200).body;
    return project.notification(data.notification_id);
  };

  test("an activity ends at its time and not before", async () => {
    afterEnd(-minute);
    expectStatus(
      await project.call(`PATCH /activities/${id}`, { body: { activity: { content_state: { n: 2 } } } }),
      202,
    );
    await eventually(async () => expect((await cardOf())?.shown).toHaveLength(3));
    expect(await cardOf()).toMatchObject({ state: "active" });
    afterEnd(5_000);
    await isEnded();
    expectStatus(
      await project.call(`PATCH /activities/${id}`, { body: { activity: { content_state: { n: 3 } } } }),
      409,
    );
  });

  test("an end that fails is tried again for four hours", async () => {
    await refuseEnds();
    await isRefusedAt(5_000);
    // The status says so at once, and the card not yet.
    expect((await project.call(`GET /activities/${id}`)).body.data).toMatchObject({ status: "ended" });
    for (const ms of [2 * hour, 4 * hour - 20 * minute]) await isRefusedAt(ms);
    expect(await cardOf()).toMatchObject({ state: "active" });
    await system.simulators.script([]);
    afterEnd(4 * hour - 5 * minute);
    await isEnded();
    expect((await endOf()).counts).toMatchObject({ accepted: 1 });
  });

  test("after four hours nothing more is sent: iOS has removed the card", async () => {
    await refuseEnds();
    await isRefusedAt(5_000);
    await eventually(async () => expect((await endOf()).counts).toMatchObject({ pending: 1 }));
    afterEnd(4 * hour + minute);
    await eventually(async () => expect(await endOf()).toMatchObject({ counts: { expired: 1 }, status: "expired" }), {
      timeoutMs: 30_000,
    });
    const tries = await refused();
    await system.simulators.script([]);
    afterEnd(6 * hour);
    expect(await refused()).toBe(tries);
    expect(await cardOf()).toMatchObject({ state: "active" });
  });
}
