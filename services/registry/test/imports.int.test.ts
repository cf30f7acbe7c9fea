import { publish } from "@herald/bus";
import {
  ImportChunkV1,
  type ImportId,
  importLimits,
  importRequests,
  newImportId,
  type ProjectId,
} from "@herald/contracts";
import { eventually } from "@herald/testing";
import { beforeEach, describe, expect, test } from "vitest";
import { z } from "zod";
import { apnsToken, useRegistry } from "./registry-fixture.ts";

const registry = useRegistry({ overrides: { maxChunkTries: 3, now: () => new Date(Date.now() + laterMs) } });
let projectId: ProjectId;
let laterMs = 0;

beforeEach(async () => {
  laterMs = 0;
  projectId = await registry.project();
});

const create = async (): Promise<ImportId> => {
  const importId = newImportId(new Date());
  await registry.ask(importRequests.create, { projectId, importId, format: "herald", dryRun: false });
  return importId;
};
type Chunk = { readonly firstLine: number; readonly last: boolean; readonly devices: readonly object[] };

const send = (importId: ImportId, { firstLine, last, devices }: Chunk, id = `${importId}/${firstLine}`) => {
  const content = devices.map((device, index) => ({ n: firstLine + index, text: JSON.stringify(device) }));
  const at = new Date("2030-01-01T00:00:00Z").toISOString();
  return publish(
    registry.bus,
    ImportChunkV1,
    { projectId, importId, firstLine, lines: content.length, last, at, content },
    { id },
  );
};
const completed = (importId: ImportId) =>
  eventually(
    async () => {
      const found = await registry.ask(importRequests.get, { projectId, importId });
      expect(found.status).toBe("completed");
      return found;
    },
    { timeoutMs: 30_000 },
  );
const errorsOf = async (importId: ImportId) =>
  (await registry.ask(importRequests.errors, { projectId, importId, page: { by: "page", page: 1, perPage: 100 } }))
    .data;
const device = (seed: string | number, rest: object = {}) => ({
  platform: "ios",
  token: apnsToken(`${projectId} ${seed}`),
  ...rest,
});

describe("chunks of one import", () => {
  test("are applied concurrently, and the last line of a device counts", async () => {
    const importId = await create();
    const chunks = Array.from({ length: 8 }, (_, at) => ({
      firstLine: at * 20 + 1,
      last: at === 7,
      devices: [
        device("same", { user_id: `user_${at}` }),
        ...Array.from({ length: 19 }, (_, index) => device(`${at} ${index}`, { topics: [`topic_${at}`] })),
      ],
    }));
    for (const chunk of chunks) await send(importId, chunk);
    expect(await completed(importId)).toMatchObject({
      lines_processed: 160,
      created: 153,
      updated: 7,
      unchanged: 0,
      refused: 0,
    });
    const token = apnsToken(`${projectId} same`);
    expect(await registry.db.collection("devices").findOne({ projectId, token })).toMatchObject({ userId: "user_7" });
  });

  test("count once, also while the same chunk is being applied", async () => {
    const importId = await create();
    const devices = Array.from({ length: 100 }, (_, at) => device(at));
    await registry.register(projectId, apnsToken(`${projectId} 0`));
    const withUsers = devices.map((one) => ({ ...one, user_id: "ann" }));
    await Promise.all(
      ["a", "b", "c"].map((id) =>
        send(importId, { firstLine: 1, last: true, devices: withUsers }, `${importId}/${id}`),
      ),
    );
    expect(await completed(importId)).toMatchObject({ lines_processed: 100, created: 99, updated: 1, unchanged: 0 });
  });
});

test("a project may have 20 unfinished imports, of which those without a file count for a day", async () => {
  const [first] = await Promise.all(Array.from({ length: importLimits.unfinished }, create));
  if (first === undefined) throw new Error("no import was created");
  const refused = await create().catch((error: unknown) => error);
  expect(refused).toMatchObject({
    code: "quota-exceeded",
    messages: [expect.stringContaining("at most 20 unfinished")],
  });
  // A repeat finds its import.
  await registry.ask(importRequests.create, { projectId, importId: first, format: "herald", dryRun: false });
  await send(first, { firstLine: 1, last: true, devices: [device("one")] });
  await completed(first);
  await create();
  await expect(create()).rejects.toMatchObject({ code: "quota-exceeded" });
  laterMs = importLimits.unfinishedMs + 1_000;
  await create();
});

describe("a chunk that a crash interrupted", () => {
  /** Applies a chunk again that is not counted yet, although at least some of its devices are stored. */
  const again = async (importId: ImportId, chunk: Chunk) => {
    await registry.db.collection("importChunks").deleteMany({ importId });
    await send(importId, chunk, `${importId}/again`);
    return completed(importId);
  };
  const chunkOf = (count: number): Chunk => ({
    firstLine: 1,
    last: true,
    devices: Array.from({ length: count }, (_, at) => device(at, { topics: ["news"] })),
  });

  test("counts its devices as created, stored before the crash or after", async () => {
    const importId = await create();
    const chunk = chunkOf(100);
    await send(importId, chunk);
    await completed(importId);
    const devices = registry.db.collection("devices");
    const before = await devices.find({ projectId }).toArray();
    await devices.deleteMany({ projectId, token: { $in: before.slice(40).map(({ token }) => token) } });
    expect(await again(importId, chunk)).toMatchObject({ created: 100, updated: 0, unchanged: 0, refused: 0 });
    const ids = (await devices.find({ projectId }).toArray()).map(({ _id }) => String(_id));
    expect(ids.sort()).toEqual(before.map(({ _id }) => String(_id)).sort());
  });

  test("gives a device that it created and that has another token since no second one", async () => {
    const importId = await create();
    const chunk = chunkOf(3);
    await send(importId, chunk);
    await completed(importId);
    const devices = registry.db.collection("devices");
    const [first] = await devices.find({ projectId, token: apnsToken(`${projectId} 0`) }).toArray();
    await devices.updateOne({ _id: first?._id as never }, { $set: { tokenHash: "rotated", token: "rotated" } });
    expect(await again(importId, chunk)).toMatchObject({ created: 3, refused: 0 });
    expect(await devices.countDocuments({ projectId })).toBe(4);
  });
});

test("lines of devices that are known stand among new ones, wherever the look-up finds the first", async () => {
  const known = Array.from({ length: 7 }, (_, at) => at * 71 + 3);
  for (const at of known) await registry.register(projectId, apnsToken(`${projectId} ${at}`));
  const importId = await create();
  const devices = Array.from({ length: 500 }, (_, at) => device(at, { user_id: "ann" }));
  await send(importId, { firstLine: 1, last: true, devices });
  expect(await completed(importId)).toMatchObject({ created: 493, updated: 7, unchanged: 0, refused: 0 });
  expect(await registry.db.collection("devices").countDocuments({ projectId, userId: "ann" })).toBe(500);
});

describe("a chunk that fails each time", () => {
  test("has its lines refused with a reason, and the import ends", async () => {
    const importId = await create();
    await send(importId, { firstLine: 1, last: false, devices: [device(1), device(2)] });
    await eventually(async () =>
      expect(await registry.ask(importRequests.get, { projectId, importId })).toMatchObject({ lines_processed: 2 }),
    );
    // A newer release, since rolled back, could have stored this format.
    const imports = registry.db.collection<{ _id: string }>("imports");
    await imports.updateOne({ _id: importId }, { $set: { format: "of-tomorrow" } });
    await send(importId, { firstLine: 3, last: true, devices: [device(3), device(4)] });
    await eventually(
      async () => {
        const rows = registry.db.collection("importChunks");
        expect(await rows.countDocuments({ projectId, importId })).toBe(2);
      },
      { timeoutMs: 30_000 },
    );
    await imports.updateOne({ _id: importId }, { $set: { format: "herald" } });
    expect(await completed(importId)).toMatchObject({ lines_processed: 4, created: 2, refused: 2, errors_left_out: 0 });
    const reason = expect.stringMatching(/^Herald could not process this part of the file; import the file again/);
    expect(await errorsOf(importId)).toEqual([
      { line: 3, field: "", reason, code: "internal" },
      { line: 4, field: "", reason, code: "internal" },
    ]);
  });

  test("and is a dead letter has its lines refused too", async () => {
    const importId = await create();
    await send(importId, { firstLine: 1, last: false, devices: [device(1), device(2)] });
    // A body that is not a chunk does not reach the handler.
    const anything = { ...ImportChunkV1, schema: z.any() };
    await publish(registry.bus, anything, { projectId, importId, firstLine: 3, lines: -1 }, { id: `${importId}/3` });
    await send(importId, { firstLine: 5, last: true, devices: [device(5)] });
    await eventually(async () =>
      expect(await registry.ask(importRequests.get, { projectId, importId })).toMatchObject({
        status: "processing",
        lines_processed: 3,
        refused: 0,
      }),
    );
    laterMs = 120_000;
    const ended = { lines_processed: 5, created: 3, refused: 2, errors_left_out: 2 };
    expect(await completed(importId)).toMatchObject(ended);
  });
});
