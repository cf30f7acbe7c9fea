import { type ImportChunkV1, importLimits } from "@herald/contracts";
import { type FileLine, HeraldError } from "@herald/kit";
import { expect, test } from "vitest";
import { importLines } from "./import-lines.ts";
import { storeLines } from "./store-lines.ts";

const base = {
  projectId: "prj_06bq4ghm31tz5d2ns8y7k9w0ac",
  importId: "imp_06bq4ghm31tz5d2ns8y7k9w0ac",
  now: () => new Date("2030-01-01T00:00:00Z"),
} as const;

const store = async (lines: FileLine[], { isCsv = false, afterLine = 0, publish = async () => {} } = {}) => {
  const chunks: ImportChunkV1[] = [];
  const files = async function* () {
    for (let at = 0; at < lines.length; at += 100) yield lines.slice(at, at + 100);
  };
  const kind = importLines({
    ...base,
    store: async (chunk) => {
      await publish();
      chunks.push(chunk);
    },
  });
  await storeLines(files(), { isCsv, afterLine, isGone: () => false }, kind);
  return chunks;
};
const text = (value: string): FileLine => ({ text: value });
const shape = (chunks: ImportChunkV1[]) =>
  chunks.map(({ firstLine, lines, last, content }) => [firstLine, lines, last, content.length]);

test("chunks have 500 lines, and the last one ends the file", async () => {
  const lines = Array.from({ length: 1_200 }, (_, at) => text(String(at)));
  expect(shape(await store(lines))).toEqual([
    [1, 500, false, 500],
    [501, 500, false, 500],
    [1_001, 200, true, 200],
  ]);
  expect(shape(await store(lines.slice(0, 500)))).toEqual([[1, 500, true, 500]]);
  expect(shape(await store([]))).toEqual([[1, 0, true, 0]]);
});

test("a resumed upload cuts the same chunks, and continues where the earlier one ended", async () => {
  const lines = Array.from({ length: 2_000 }, (_, at) => text("x".repeat((at * 37) % 3_000)));
  const whole = await store(lines);
  expect(whole.length).toBeGreaterThan(4);
  for (const { firstLine } of whole.slice(1)) {
    const rest = await store(lines, { afterLine: firstLine - 1 });
    expect(rest).toEqual(whole.filter((chunk) => chunk.firstLine >= firstLine));
  }
  for (const chunk of whole)
    expect(Buffer.byteLength(JSON.stringify(chunk))).toBeLessThan(importLimits.chunkBytes + 1_000);
});

test("blank lines and the header count, and are left out", async () => {
  const chunks = await store([text("token,platform"), text("a,ios"), text(" "), { problem: "not-utf8" }], {
    isCsv: true,
  });
  expect(chunks).toMatchObject([
    {
      firstLine: 1,
      lines: 4,
      header: "token,platform",
      content: [
        { n: 2, text: "a,ios" },
        { n: 4, problem: "not-utf8" },
      ],
    },
  ]);
  const rest = await store([text("token,platform"), text("a,ios"), text("b,ios")], { isCsv: true, afterLine: 2 });
  expect(rest).toMatchObject([{ firstLine: 3, header: "token,platform", content: [{ n: 3 }] }]);
});

test("a header of more than 200 columns is refused before anything is stored", async () => {
  for (const separator of [",", ";", "\t"]) {
    const header = (columns: number) =>
      text(Array.from({ length: columns }, (_, at) => `"a${separator}${at}"`).join(separator));
    expect(await store([header(200), text("b")], { isCsv: true })).toHaveLength(1);
    await expect(store([header(201), text("b")], { isCsv: true })).rejects.toMatchObject({
      code: "validation-failed",
      messages: ["body: a CSV file may have at most 200 columns; remove those that Herald does not need"],
    });
  }
});

test("a full stream is waited for; an unavailable one is an error", async () => {
  let refused = 0;
  const publish = async () => {
    if (refused++ < 3) throw new HeraldError("queue-full", "full");
  };
  expect(await store([text("a")], { publish })).toHaveLength(1);
  expect(refused).toBe(4);
  const unavailable = async () => {
    throw new HeraldError("bus-unavailable", "gone");
  };
  await expect(store([text("a")], { publish: unavailable })).rejects.toMatchObject({ code: "bus-unavailable" });
});

test("a file that is shorter than what is stored is refused", async () => {
  await expect(store([text("a")], { afterLine: 5 })).rejects.toMatchObject({ code: "import-position-mismatch" });
});
