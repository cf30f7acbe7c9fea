import { newDeviceId, newNotificationId, newProjectId, type OpenGroupV1 } from "@herald/contracts";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { createGroupOpens, dedupeOpens, groupForMs } from "./group-opens.ts";

beforeEach(() => {
  vi.useFakeTimers();
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

const recorder = (write: (opens: OpenGroupV1) => Promise<void> = async () => {}) => {
  const written: OpenGroupV1[] = [];
  const opens = createGroupOpens(async (group) => {
    written.push(group);
    await write(group);
  });
  return { written, opens };
};

describe("opens are grouped", () => {
  test("by project, for ten milliseconds", async () => {
    const { written, opens } = recorder();
    const [one, other] = [newProjectId(now), newProjectId(now)];
    const recorded = [opens.record(one, open()), opens.record(one, open()), opens.record(other, open())];
    await vi.advanceTimersByTimeAsync(groupForMs - 1);
    expect(written).toEqual([]);
    await vi.advanceTimersByTimeAsync(1);
    expect(written.map((group) => [group.projectId, group.opens.length])).toEqual([
      [one, 2],
      [other, 1],
    ]);
    await Promise.all(recorded);
  });

  test("up to a hundred, which are written at once", async () => {
    const { written, opens } = recorder();
    const project = newProjectId(now);
    const recorded = Array.from({ length: 201 }, () => opens.record(project, open()));
    expect(written.map((group) => group.opens.length)).toEqual([100, 100]);
    await vi.advanceTimersByTimeAsync(groupForMs);
    expect(written.map((group) => group.opens.length)).toEqual([100, 100, 1]);
    await Promise.all(recorded);
    expect(vi.getTimerCount()).toBe(0);
  });

  test("while the previous group is written, until a hundred wait", async () => {
    const slow = Promise.withResolvers<void>();
    const project = newProjectId(now);
    const { written, opens } = recorder(async () => {
      if (written.length === 1) await slow.promise;
    });
    const sizes = () => written.map((group) => group.opens.length);
    const recorded = [opens.record(project, open())];
    await vi.advanceTimersByTimeAsync(groupForMs);
    for (let index = 0; index < 103; index++) {
      recorded.push(opens.record(project, open()));
      if (index % 10 === 5) await vi.advanceTimersByTimeAsync(groupForMs);
    }
    expect(sizes()).toEqual([1, 100]);
    await vi.advanceTimersByTimeAsync(groupForMs);
    expect(sizes()).toEqual([1, 100, 3]);
    slow.resolve();
    await Promise.all(recorded);
    expect(vi.getTimerCount()).toBe(0);
  });

  test("and wait for the previous group, whether it succeeds or fails", async () => {
    const slow = Promise.withResolvers<void>();
    const project = newProjectId(now);
    const { written, opens } = recorder(async () => {
      if (written.length === 1) await slow.promise;
    });
    const first = opens.record(project, open()).catch((error: Error) => error.message);
    await vi.advanceTimersByTimeAsync(groupForMs);
    const second = opens.record(project, open());
    await vi.advanceTimersByTimeAsync(10 * groupForMs);
    const third = opens.record(project, open());
    expect(written.map((group) => group.opens.length)).toEqual([1]);
    slow.reject(new Error("away"));
    expect(await first).toBe("away");
    await Promise.all([second, third]);
    expect(written.map((group) => group.opens.length)).toEqual([1, 2]);
  });

  test("and fail only with their own group", async () => {
    const failing = newProjectId(now);
    const { opens } = recorder(async ({ projectId }) => {
      if (projectId === failing) throw new Error("away");
    });
    const outcomes = [failing, failing, newProjectId(now)].map((project) =>
      opens.record(project, open()).then(
        () => "recorded",
        (error: Error) => error.message,
      ),
    );
    await vi.advanceTimersByTimeAsync(groupForMs);
    expect(await Promise.all(outcomes)).toEqual(["away", "away", "recorded"]);
  });

  test("and are written at once when the gateway stops", async () => {
    const { written, opens } = recorder();
    const recorded = opens.record(newProjectId(now), open());
    await opens.flush();
    expect(written).toHaveLength(1);
    await recorded;
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
  const record = dedupeOpens(
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
