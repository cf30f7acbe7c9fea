import { newDeviceId, newNotificationId, newProjectId, type OpenGroupV1 } from "@herald/contracts";
import { HeraldError } from "@herald/kit";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { createGroupReports, dedupeReports, reportGroups } from "./group-reports.ts";

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "setImmediate", "performance"] });
});
afterEach(() => {
  vi.useRealTimers();
});

const now = new Date();
const open = () => ({
  notificationId: newNotificationId(now),
  deviceId: newDeviceId(now),
  openedAt: now.toISOString(),
});

/** A writer whose writes the test ends one by one. */
const recorder = () => {
  const writes: { group: OpenGroupV1; succeed: () => void; fail: (error: Error) => void }[] = [];
  const record = createGroupReports<OpenGroupV1["opens"][number]>(
    (projectId, opens) =>
      new Promise((succeed, fail) =>
        writes.push({ group: { projectId, opens }, succeed: () => succeed(undefined), fail }),
      ),
  );
  return { writes, record, sizes: () => writes.map(({ group }) => group.opens.length) };
};
const outcomeOf = (recorded: Promise<void>) =>
  recorded.then(
    () => "recorded",
    (error: Error) => error.message,
  );

describe("opens", () => {
  test("of a moment are grouped by project, up to a hundred", async () => {
    const { writes, record } = recorder();
    const [one, other] = [newProjectId(now), newProjectId(now)];
    const opens = Array.from({ length: 201 }, open);
    const recorded = [...opens.map((each) => record(one, each)), record(other, open())];
    await vi.advanceTimersByTimeAsync(0);
    expect(writes.map(({ group }) => [group.projectId, group.opens.length])).toEqual([
      [one, 100],
      [one, 100],
      [one, 1],
      [other, 1],
    ]);
    expect(writes.slice(0, 3).flatMap(({ group }) => group.opens)).toEqual(opens);
    for (const { succeed } of writes) succeed();
    await Promise.all(recorded);
  });

  test("wait for the previous ones and for the interval, and are then written together", async () => {
    const { writes, record, sizes } = recorder();
    const project = newProjectId(now);
    const recorded = [record(project, open())];
    await vi.advanceTimersByTimeAsync(0);
    recorded.push(record(project, open()));
    await vi.advanceTimersByTimeAsync(2 * reportGroups.intervalMs);
    recorded.push(record(project, open()));
    expect(sizes()).toEqual([1]);
    writes[0]?.succeed();
    await vi.advanceTimersByTimeAsync(0);
    expect(sizes()).toEqual([1, 2]);
    recorded.push(record(project, open()));
    writes[1]?.succeed();
    await vi.advanceTimersByTimeAsync(reportGroups.intervalMs - 1);
    expect(sizes()).toEqual([1, 2]);
    await vi.advanceTimersByTimeAsync(1);
    expect(sizes()).toEqual([1, 2, 1]);
    writes[2]?.succeed();
    await Promise.all(recorded);
    expect(vi.getTimerCount()).toBe(0);
  });

  test("fail only with their own message, and the next ones are written", async () => {
    const { writes, record } = recorder();
    const [failing, other] = [newProjectId(now), newProjectId(now)];
    const outcomes = [failing, failing, other].map((project) => outcomeOf(record(project, open())));
    await vi.advanceTimersByTimeAsync(0);
    writes[0]?.fail(new Error("away"));
    writes[1]?.succeed();
    expect(await Promise.all(outcomes)).toEqual(["away", "away", "recorded"]);
    const next = outcomeOf(record(failing, open()));
    await vi.advanceTimersByTimeAsync(reportGroups.intervalMs);
    writes[2]?.succeed();
    expect(await next).toBe("recorded");
  });

  test("do not wait out the timeout of those before them while the broker is unavailable", async () => {
    const { writes, record } = recorder();
    const project = newProjectId(now);
    const first = outcomeOf(record(project, open()));
    await vi.advanceTimersByTimeAsync(0);
    const behind = outcomeOf(record(project, open()));
    writes[0]?.fail(new HeraldError("bus-unavailable", "away"));
    expect(await Promise.all([first, behind])).toEqual(["away", "away"]);
    expect(writes).toHaveLength(1);
  });
});

const at = new Date("2030-01-01T00:00:00Z");
const projectId = newProjectId(at);
const newOpen = () => ({
  notificationId: newNotificationId(at),
  deviceId: newDeviceId(at),
  openedAt: at.toISOString(),
});

/** A writer whose writes the test ends one by one. */
const writer = (max?: number) => {
  const writes: { deviceId: string; succeed: () => void; fail: (error: Error) => void }[] = [];
  const record = dedupeReports(
    (_, { deviceId }) =>
      new Promise((succeed, fail) => {
        writes.push({ deviceId, succeed, fail });
      }),
    max,
  );
  return { writes, record: (open: ReturnType<typeof newOpen>) => record(projectId, open) };
};

test("a repeat waits for the first write, and later ones write nothing", async () => {
  const { writes, record } = writer();
  const open = newOpen();
  let answered = 0;
  const both = [record(open), record({ ...open })].map((one) => one.then(() => answered++));
  await Promise.resolve();
  expect([writes.length, answered]).toEqual([1, 0]);
  writes[0]?.succeed();
  await Promise.all(both);
  await record(open);
  expect(writes).toHaveLength(1);
});

test("opens of other devices or notifications are written", () => {
  const { writes, record } = writer();
  const open = newOpen();
  void record(open);
  void record({ ...open, deviceId: newDeviceId(at) });
  void record({ ...open, notificationId: newNotificationId(at) });
  expect(writes).toHaveLength(3);
});

test("an open whose write failed is written on the next try", async () => {
  const { writes, record } = writer();
  const open = newOpen();
  const first = record(open);
  writes[0]?.fail(new Error("unavailable"));
  await expect(first).rejects.toThrow("unavailable");
  void record(open);
  expect(writes).toHaveLength(2);
});

test("only the latest opens are remembered", async () => {
  const { writes, record } = writer(2);
  const opens = [newOpen(), newOpen(), newOpen()] as const;
  for (const open of opens) void record(open);
  for (const { succeed } of writes) succeed();
  await Promise.resolve();
  await record(opens[2]);
  await record(opens[1]);
  expect(writes).toHaveLength(3);
  void record(opens[0]);
  expect(writes).toHaveLength(4);
});
