import { MongoBulkWriteError } from "mongodb";
import { afterEach, expect, onTestFinished, test, vi } from "vitest";
import { insertBatched, updateBatched } from "./batched.ts";

/** What the driver throws when PostgreSQL refuses one write, which no test can make it do at will. */
const refusal = (errmsg: string, code = 1) => {
  const writeErrors = [{ index: 0, code, errmsg }];
  return new MongoBulkWriteError({ message: errmsg, code, writeErrors: writeErrors as never }, {
    matchedCount: 1,
  } as never);
};

const [one, other] = [
  { _id: "a", projectId: "p" },
  { _id: "b", projectId: "p" },
];

afterEach(() => void vi.useRealTimers());

test.each(["deadlock detected (SQLSTATE 40P01)", "terminating connection (SQLSTATE 57P01)"])(
  "one write of several that may succeed later says so: %s",
  async (text) => {
    const refuses = () => Promise.reject(refusal(text));
    const unavailable = { code: "database-unavailable" };
    const insert = insertBatched<typeof one>({ insertMany: refuses } as never);
    expect(await insert.all([one, other])).toMatchObject([{ done: false, error: unavailable }, { done: true }]);
    const update = updateBatched<typeof one>({ bulkWrite: refuses } as never);
    const all = [one, other].map((key) => ({ key, condition: { _id: key._id }, update: { $set: {} } }));
    expect(await update.all(all)).toMatchObject([
      { status: "rejected", reason: unavailable },
      { status: "fulfilled", value: "updated" },
    ]);
  },
);

test("a refusal that comes after the deadline of its command is no unhandled error", async () => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  const unhandled: unknown[] = [];
  const note = (error: unknown) => void unhandled.push(error);
  const listeners = process.listeners("unhandledRejection");
  process.removeAllListeners("unhandledRejection").on("unhandledRejection", note);
  onTestFinished(() => {
    process.off("unhandledRejection", note);
    for (const listener of listeners) process.on("unhandledRejection", listener);
  });
  const turns = async () => {
    for (let n = 0; n < 3; n++) await new Promise((resolve) => setImmediate(resolve));
  };
  const bulkWrite = () => new Promise((_, reject) => setTimeout(() => reject(refusal("refused", 121)), 11_000));
  const updated = updateBatched<typeof one>({ bulkWrite } as never)(one, {}, { $set: {} }).catch(({ code }) => code);
  await turns();
  await vi.advanceTimersByTimeAsync(10_500);
  expect(await updated).toBe("database-unavailable");
  await vi.advanceTimersByTimeAsync(1_000);
  await turns();
  expect(unhandled).toEqual([]);
});
