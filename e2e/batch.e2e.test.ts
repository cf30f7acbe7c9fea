import { expectStatus } from "@herald/testing";
import { expect } from "vitest";
import type { Project } from "./harness/project.ts";
import { test } from "./harness/shared-system.ts";
import { payloadOf } from "./harness/simulators.ts";
import { logOnFailure, type System } from "./harness/system.ts";

let system: System;
let project: Project;
test.beforeAll(async ({ system: shared }) => {
  system = shared;
  project = await system.project();
});
logOnFailure(() => system);

/** What arrived, and where. */
const arrived = async () => {
  const pushes = await system.simulators.pushes();
  return pushes.flatMap((push) => {
    const { project_id, notification_id, aps } = payloadOf(push);
    const { title } = (aps?.alert ?? {}) as { title?: string };
    return project_id === project.id ? [{ id: notification_id, title, token: push.token }] : [];
  });
};

test("each notification of a batch arrives once on its own device, and a repeat sends nothing", async () => {
  const devices = await Promise.all(Array.from({ length: 12 }, () => project.register({ topics: ["everybody"] })));
  const notifications = [
    ...devices.map(({ device }, index) => ({ title: `For ${index}`, targets: [device.id] })),
    { title: "For no device", targets: [] },
    { title: "For all", targets: ["topic:everybody"] },
  ];
  const post = () =>
    project.call("POST /notifications/batch", { body: { notifications }, headers: { "idempotency-key": "batch-1" } });
  const answer = expectStatus(await post(), 202);
  const ids = answer.body.data.map(({ id }: { id?: string }) => id);
  expect(ids.filter((id: string | undefined) => id === undefined)).toHaveLength(1);
  expect(answer.body.data[12]).toEqual({ errors: ["notifications.12.targets: at least one target is required"] });
  // Each notification is readable as soon as the batch is answered.
  for (const id of ids.slice(0, 3)) expect((await project.notification(id)).id).toBe(id);
  expect((await post()).body).toEqual(answer.body);

  for (const [index, { device }] of devices.entries()) {
    const done = await project.final(ids[index]);
    expect(done).toMatchObject({ status: "completed", counts: { devices: 1, accepted: 1 } });
    const [delivery] = await project.deliveries(ids[index]);
    expect(delivery).toMatchObject({ device_id: device.id, attempts: 1, possible_repeat: false });
  }
  expect(await project.final(ids[13])).toMatchObject({ counts: { devices: 12, accepted: 12 } });
  const pushes = await arrived();
  for (const [index, { device }] of devices.entries())
    expect(pushes.filter(({ id }) => id === ids[index])).toEqual([
      { id: ids[index], title: `For ${index}`, token: device.token },
    ]);
  expect(pushes).toHaveLength(24);
  expect((await project.notifications()).map(({ id }) => id).sort()).toEqual(
    ids.filter((id: string | undefined) => id !== undefined).sort(),
  );
});
