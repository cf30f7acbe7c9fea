import { newDeviceId, newNotificationId, newProjectId } from "@herald/contracts";
import { expect, test } from "vitest";
import { dedupeOpens } from "./dedupe-opens.ts";

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
