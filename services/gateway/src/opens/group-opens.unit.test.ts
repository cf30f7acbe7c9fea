import { newDeviceId, newNotificationId, newProjectId, type OpenGroupV1 } from "@herald/contracts";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { createGroupOpens, groupForMs } from "./group-opens.ts";

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
