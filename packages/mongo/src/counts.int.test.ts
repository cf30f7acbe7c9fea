import { createDeadline, runWithDeadline } from "@herald/kit";
import { type FreshDatabase, freshDatabase } from "@herald/testing";
import { afterAll, beforeAll, expect, test } from "vitest";
import { deadlineOptions } from "./counts.ts";
import { unavailableAsError } from "./unavailable.ts";

let database: FreshDatabase;
beforeAll(async () => {
  database = await freshDatabase();
});
afterAll(() => database.drop());

test("the server stops a read at its caller's deadline, and the read fails with database-unavailable", async () => {
  const rows = database.client.db(database.name).collection("rows");
  const padding = "x".repeat(200);
  for (let page = 0; page < 4; page++)
    await rows.insertMany(Array.from({ length: 5_000 }, (_, index) => ({ n: (index * 7919) % 5_000, padding })));
  const read = () =>
    rows
      .aggregate([{ $group: { _id: "$n", of: { $push: "$padding" } } }, { $sort: { of: -1 } }], deadlineOptions())
      .toArray();
  expect(await runWithDeadline(createDeadline(60_000), read)).toHaveLength(5_000);
  await expect(runWithDeadline(createDeadline(5), () => unavailableAsError(read))).rejects.toMatchObject({
    code: "database-unavailable",
  });
  expect(await read()).toHaveLength(5_000);
});
