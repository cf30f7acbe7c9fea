import { newNotificationIds } from "@herald/contracts";
import { eventually, readStream } from "@herald/testing";
import { afterEach, expect, test } from "vitest";
import { device, devices } from "./dispatch-fixture.ts";
import { useSendGroups } from "./send-groups-fixture.ts";

const { dispatch, answers, accept, acceptAll, groupOf, put, sendsOf, known } = useSendGroups();
afterEach(() => {
  dispatch().clock.ahead = 0;
});

test("sends of many projects at a time are requested for each project", async () => {
  const projects = await Promise.all(Array.from({ length: 16 }, () => dispatch().project()));
  const ids = newNotificationIds(new Date(), 64);
  const sends = ids.flatMap((notificationId, at) =>
    sendsOf(projects[at % 16] ?? "prj_", devices(1), { notificationId }),
  );
  await put(groupOf(sends));
  for (const [at, id] of ids.entries())
    expect(await dispatch().final(projects[at % 16] ?? "prj_", id)).toMatchObject({ counts: { accepted: 1 } });
  expect(answers().asked).toEqual(Array.from({ length: 16 }, () => 4));
});

test("a project whose audiences take long delays no other's sends", async () => {
  const { promise, resolve } = Promise.withResolvers<void>();
  const [noisy, neighbour] = [await dispatch().project(), await dispatch().project()];
  const [slow] = devices(1);
  answers().withholdOf(noisy, promise);
  const [waiting] = await acceptAll(sendsOf(noisy, [slow ?? device()]));
  await eventually(() => expect(answers().asked).toEqual([1]));
  for (const one of devices(3)) {
    const [id] = await acceptAll(sendsOf(neighbour, [one]));
    expect(await dispatch().final(neighbour, id ?? "ntf_")).toMatchObject({ counts: { accepted: 1 } });
  }
  resolve();
  expect(await dispatch().final(noisy, waiting ?? "ntf_")).toMatchObject({ counts: { accepted: 1 } });
});

test("a send over which registry dies is asked for alone, then dead-lettered, and the others of its group are sent", async () => {
  const projectId = await dispatch().project();
  const good = device();
  known("token:good", [good]);
  answers().registry.set("token:fatal", "fatal");
  const [sent, fatal] = await accept(projectId, "token:good", "token:fatal");
  expect(await dispatch().final(projectId, sent ?? "ntf_")).toMatchObject({ counts: { accepted: 1 } });
  const letters = await eventually(async () => {
    const found = await readStream(dispatch().broker, "PUSH_DLQ", "push.dlq.v1.dispatch-send-groups");
    expect(found).toHaveLength(1);
    return found;
  });
  expect(JSON.parse(letters[0]?.body ?? "")).toMatchObject({ notificationId: fatal });
  expect(answers().asked.slice(-2)).toEqual([1, 1]);
  // Nothing expands it as a large send.
  dispatch().clock.ahead = 3_600_000;
  expect(await dispatch().final(projectId, fatal ?? "ntf_")).toMatchObject({ counts: { devices: 0 } });
  expect(await readStream(dispatch().broker, "PUSH_CMD", "push.cmd.v1.registry.>")).toEqual([]);
}, 60_000);
