import { eventually } from "@herald/testing";
import { afterAll, expect } from "vitest";
import { inParallel } from "./harness/in-parallel.ts";
import { checkInvariants, nothingBroken } from "./harness/invariants.ts";
import { deliveryKey } from "./harness/ledger.ts";
import { pushAgain } from "./harness/push-again.ts";
import { seed } from "./harness/seed.ts";
import { test } from "./harness/shared-system.ts";
import { deviceOf, payloadOf } from "./harness/simulators.ts";
import { logOnFailure, type System } from "./harness/system.ts";

/** Three batches; the row `three-platforms` of the faults has 10,000 devices. */
const audience = 1_500;
const singles = 50;
/** Ids that do not exist. */
const [lost, never] = ["ntf_01m7yrszajfsprzbd1z1br2ywr", "ntf_01m7yrszajfsprzbd1z1br2yww"];

let system: System;
test.beforeAll(({ system: shared }) => {
  system = shared;
});
afterAll(() => system.simulators.script([]));
logOnFailure(() => system);

test("each of a topic's 1,500 devices gets its notification once, while single sends continue", async () => {
  const [broadcaster, neighbour] = [await system.project("Broadcaster"), await system.project("Neighbour")];
  const subscribers = await seed(system, broadcaster, audience, { prefix: "b0b0", topics: ["everyone"] });
  // A slow provider, so that the broadcast lasts as long as the other work: 100 pushes are in flight at a time.
  await system.simulators.script([{ provider: "apns", tokenPrefix: "b0b0", delayMs: 400 }]);
  const projects = [
    { project: broadcaster, devices: await seed(system, broadcaster, singles) },
    { project: neighbour, devices: await seed(system, neighbour, singles) },
  ];
  const broadcast = await broadcaster.send({ title: "To everyone", targets: ["topic:everyone"] });
  const follow = system.simulators.follow();
  const arriving = async () => (await follow()).map((push) => payloadOf(push)?.notification_id);
  await eventually(async () => expect(await arriving()).toContain(broadcast.id), { timeoutMs: 30_000 });
  // Now the broadcast is running.
  const sent = await Promise.all(
    projects.map(({ project, devices }) =>
      inParallel(devices, 4, async ({ id, token }, index) => {
        const { id: notificationId } = await project.send({ title: `Single ${index}`, targets: [`token:${token}`] });
        return { id: notificationId, devices: 1, device: id };
      }),
    ),
  );
  const [own = [], foreign = []] = sent;

  expect(await checkInvariants(system, broadcaster, [{ id: broadcast.id, devices: audience }, ...own])).toMatchObject({
    ...nothingBroken,
    repeated: 0,
    deliveries: audience + singles,
  });
  expect(await checkInvariants(system, neighbour, foreign)).toMatchObject({
    ...nothingBroken,
    repeated: 0,
    deliveries: singles,
  });
  expect(await broadcaster.final(broadcast.id)).toMatchObject({
    status: "completed",
    counts: {
      devices: audience,
      accepted: audience,
      failed: 0,
      expired: 0,
      cancelled: 0,
      skipped: 0,
      pending: 0,
      opened: 0,
    },
    failures: {},
    unmatched: [],
  });

  const pushes = (await system.simulators.pushes({ status: 200 })).filter((push) =>
    projects.some(({ project }) => project.id === payloadOf(push).project_id),
  );
  expect(pushes).toHaveLength(audience + 2 * singles);
  const gotBroadcast = pushes.filter((push) => payloadOf(push).notification_id === broadcast.id);
  expect(new Set(gotBroadcast.map(deviceOf))).toEqual(new Set(subscribers.map(({ id }) => id)));
  const single = pushes.filter((push) => payloadOf(push).notification_id !== broadcast.id);
  expect(single[0]?.seq).toBeLessThan(gotBroadcast.at(-1)?.seq ?? 0);
  const gotSingle = new Map(single.map((push) => [payloadOf(push).notification_id, deviceOf(push)]));
  for (const { id, device } of [...own, ...foreign]) expect(gotSingle.get(id)).toBe(device);
});

test("a cancel during delivery stops unsent pushes, and the counts stay exact", async () => {
  const project = await system.project("Regretful");
  await system.simulators.script([{ provider: "apns", tokenPrefix: "b0b0", delayMs: 500 }]);
  const subscribers = 1_000;
  await seed(system, project, subscribers, { prefix: "b0b0", topics: ["everyone"] });
  const { id } = await project.send({ title: "Too early", targets: ["everyone"] });
  const arrived = async () =>
    (await system.simulators.pushes()).filter((push) => payloadOf(push).notification_id === id).length;
  await eventually(async () => expect(await arrived()).toBeGreaterThan(0), { timeoutMs: 30_000 });
  const cancel = () => project.call(`DELETE /notifications/${id}`);
  expect((await cancel()).status).toBe(200);

  const { status, counts } = await project.final(id);
  expect(status).toBe("cancelled");
  expect(counts).toMatchObject({ devices: subscribers, failed: 0, expired: 0, pending: 0 });
  expect(counts.cancelled).toBeGreaterThan(0);
  expect(await checkInvariants(system, project, [{ id, devices: subscribers }])).toMatchObject({
    ...nothingBroken,
    repeated: 0,
    deliveries: subscribers,
  });
  expect(await arrived()).toBe(counts.accepted);
  expect((await cancel()).status).toBe(409);
});

test("the checker detects lost, repeated and unmarked pushes", async () => {
  const project = await system.project("Broken on purpose");
  const [first, second] = await seed(system, project, 2);
  const { id } = await project.send({ title: "Once", targets: ["all"] });
  await project.final(id);
  const pushes = (await system.simulators.pushes()).filter((push) => payloadOf(push).notification_id === id);
  const push = pushes.find((one) => deviceOf(one) === first?.id);
  if (!push || !second) throw new Error("it did not arrive");
  const well = await checkInvariants(system, project, [{ id, devices: 2 }], { opened: new Set() });
  expect(well).toMatchObject({ ...nothingBroken, repeated: 0, deliveries: 2 });

  await pushAgain(system.simulators, push);
  await pushAgain(system.simulators, { ...push, payload: { ...payloadOf(push), notification_id: never } });
  const promised = [
    { id, devices: 3 },
    { id: lost, devices: 1 },
  ];
  const opened = new Set([deliveryKey(id, second.id)]);
  const broken = await checkInvariants(system, project, promised, { timeoutMs: 100, opened });
  expect(broken).toMatchObject({
    lost: [lost],
    unmarked: [`${deliveryKey(id, deviceOf(push))}: 2 times`],
    wrong: [
      `${id}: addressed 2 devices instead of 3`,
      `${deliveryKey(id, second.id)}: its open was answered 204 and is not counted`,
      `${deliveryKey(never, deviceOf(push))}: the device got what the ledger does not know`,
    ],
    repeated: 1,
    repeats: [expect.stringContaining("accepted after 1 attempts")],
    deliveries: 2,
  });
  const unpromised = await checkInvariants(system, project, [], { timeoutMs: 100 });
  expect(unpromised.wrong).toContain(`${id}: it was never promised`);
});
