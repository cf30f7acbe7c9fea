import { newProjectId, type RecipientLine, readRecipientLines } from "@herald/contracts";
import { type FileLine, HeraldError } from "@herald/kit";
import { expect, test } from "vitest";
import { createHashMemory, createHashSet, type HashRoom } from "./hash-set.ts";
import { type RecipientChunk, recipientLines } from "./recipient-lines.ts";
import { storeLines } from "./store-lines.ts";

const text = (value: unknown): FileLine => ({ text: typeof value === "string" ? value : JSON.stringify(value) });
const recipient = (key: string, variables = {}) => text({ target: `user:${key}`, variables });

const project = newProjectId(new Date());
const roomOf = (bytes: number) => createHashMemory({ total: bytes, perProject: bytes }).roomOf(project);

const store = async (
  lines: readonly FileLine[],
  {
    afterLine = 0,
    isCsv = false,
    maxBytes = 1_048_576,
    append = async (_: RecipientChunk): Promise<unknown> => undefined,
  } = {},
) => {
  const chunks: RecipientChunk[] = [];
  const files = async function* () {
    for (let at = 0; at < lines.length; at += 100) yield lines.slice(at, at + 100);
  };
  const seen = createHashSet(roomOf(maxBytes));
  const kind = recipientLines({
    ...{ kind: "user", texts: { values: {} }, seen },
    append: async (chunk) => {
      await append(chunk);
      chunks.push(chunk);
    },
  });
  await storeLines(files(), { isCsv, afterLine, isGone: () => false }, kind);
  return { chunks };
};
const shape = ({ chunks }: { chunks: readonly RecipientChunk[] }) =>
  chunks.map(({ firstLine, lastLine, recipients, refused, duplicates, last }) => [
    ...[firstLine, lastLine, recipients, refused, duplicates],
    last,
  ]);

test.each([";", "\t"])(
  "cells may be separated by %j, as spreadsheets of many countries write them",
  async (separator) => {
    const rows = [
      ["target", "sum"],
      ["user:ann", "12,50"],
      ["user:bob", '"1;2"'],
    ];
    const { chunks } = await store(
      rows.map((cells) => text(cells.join(separator))),
      { isCsv: true },
    );
    expect(chunks.flatMap(({ lines }) => readRecipientLines(lines))).toMatchObject([
      { key: "ann", values: { sum: "12,50" } },
      { key: "bob", values: { sum: "1;2" } },
    ]);
  },
);

test("every thousandth line counts once, as a recipient, a double or an error, in whatever pieces it is uploaded", async () => {
  const lines = Array.from({ length: 5_000 }, (_, at): FileLine => {
    if (at % 10 === 3) return recipient(`u${at - 1}`);
    if (at % 10 === 5) return text("not JSON");
    return at % 10 === 7 ? text("  ") : recipient(`u${at}`, { n: at });
  });
  const whole = await store(lines);
  expect(shape(whole)).toEqual([
    [1, 2_000, 1_400, 200, 200, false],
    [2_001, 4_000, 1_400, 200, 200, false],
    [4_001, 5_000, 700, 100, 100, true],
  ]);
  const all = whole.chunks.flatMap(({ lines: json }) => readRecipientLines(json));
  expect(new Set(all.map(({ key }) => key)).size).toBe(3_500);
  expect(all[1]).toEqual({ n: 2, key: "u1", values: { n: 1 } } satisfies RecipientLine);
  // A double of a line before the place where the upload continues is one, too.
  const rest = await store(lines, { afterLine: 2_003 });
  expect(rest.chunks.flatMap(({ lines: json }) => readRecipientLines(json))).toEqual(all.filter(({ n }) => n > 2_003));
  await expect(store(lines, { afterLine: 5_001 })).rejects.toMatchObject({ code: "import-position-mismatch" });
});

test("a chunk fits into a message, whatever its lines and errors contain", async () => {
  const hostile = Array.from({ length: 4_000 }, (_, at) =>
    at % 2 === 0
      ? recipient(`${at}`, { quotes: '"'.repeat(900), controls: "\u0001".repeat(90) })
      : text({
          target: "user:a",
          variables: Object.fromEntries([..."abcdefgh"].map((name) => [`${name}-`.repeat(9), {}])),
        }),
  );
  const { chunks } = await store(hostile);
  const sum = (count: "recipients" | "refused") => chunks.reduce((all, chunk) => all + chunk[count], 0);
  expect([sum("recipients"), sum("refused")]).toEqual([2_000, 2_000]);
  for (const chunk of chunks) expect(Buffer.byteLength(JSON.stringify(chunk))).toBeLessThan(900_000);
});

test("a chunk fits into a message, whatever its keys contain", async () => {
  const { chunks } = await store(Array.from({ length: 4_000 }, (_, at) => recipient('"'.repeat(115) + at)));
  expect(chunks.reduce((all, chunk) => all + chunk.recipients, 0)).toBe(4_000);
  for (const chunk of chunks) expect(Buffer.byteLength(JSON.stringify(chunk))).toBeLessThan(900_000);
});

test.each<[string, FileLine, string]>([
  ["without `target`", text("user,sum"), "body: the first row must name the columns: `target`, and the variables"],
  ["of 201 columns", text(`target${",a".repeat(200)}`), "body: a CSV file may have at most 200 columns"],
  ["that is too long", { problem: "too-long" }, "body: the header of the CSV file is too long, or not UTF-8"],
])("a header %s refuses the file", async (_, header, message) => {
  await expect(store([header, text("user:ann,1")], { isCsv: true })).rejects.toMatchObject({
    code: "validation-failed",
    messages: [expect.stringContaining(message)],
  });
});

test.each([
  ["not JSON", "is not JSON; each line must be one object"],
  [`{"target":"user:a","variables":{"list":[${"1,".repeat(2_000)}1]}}`, "at most 2000 values"],
  ["a\0b", "has NUL characters"],
  ["[]", "must be a JSON object"],
])("a line is refused with its reason: %.20s", async (line, reason) => {
  const { chunks } = await store([text(line)]);
  expect(chunks.flatMap(({ errors }) => errors)).toMatchObject([{ line: 1, reason: expect.stringContaining(reason) }]);
});

test("waits while as many chunks wait as may", async () => {
  let full = 2;
  const append = async () => {
    if (full-- > 0) throw new HeraldError("queue-full", "full");
  };
  expect(shape(await store([recipient("a")], { append }))).toEqual([[1, 1, 1, 0, 0, true]]);
  const broken = async () => {
    throw new HeraldError("notification-final", "cancelled");
  };
  await expect(store([recipient("a")], { append: broken })).rejects.toMatchObject({ code: "notification-final" });
});

test("of targets that differ a little, none is taken for another, and each is found again", () => {
  const set = createHashSet(roomOf(2_097_152));
  const texts = ["", "a", "\u0000", "\u0000\u0000", "ab", "ba", "é", "\ud83d\ude00"];
  for (let at = 0; at < 100_000; at++) texts.push(`u_${at}`);
  expect(texts.filter((text) => !set.add(text))).toEqual([]);
  expect(texts.filter((text) => set.add(text))).toEqual([]);
});

test("an upload that needs more memory than its project may have is refused, and gives back what it had", async () => {
  const lines = Array.from({ length: 2_000 }, (_, at) => recipient(`u${at}`));
  const room = createHashMemory({ total: 1_048_576, perProject: 16_384 }).roomOf(project);
  const one = createHashSet(room);
  // So few that no table of the set grows, whatever its random key is.
  for (let at = 0; at < 60; at++) expect(one.add(`u${at}`)).toBe(true);
  expect(one.add("u3")).toBe(false);
  expect(() => createHashSet(room)).not.toThrow();
  expect(() => createHashSet(room)).toThrow("as many lines as they may have at a time");
  one.release();
  expect(() => createHashSet(room)).not.toThrow();
  await expect(store(lines, { maxBytes: 16_384 })).rejects.toMatchObject({ code: "rate-limited" });
});

/** Adds texts until there is no room. Returns the bytes that they take. */
const fill = (room: HashRoom): number => {
  const set = createHashSet(room);
  try {
    for (let added = 0; ; added++) set.add(`u${added}`);
  } catch {
    return set.bytes();
  }
};

test("uploads of one project leave others at least three quarters of what it has, and a line costs what it takes", () => {
  const total = 1_048_576;
  const memory = createHashMemory({ total, perProject: total / 2 });
  const [one, other, third] = [project, newProjectId(new Date()), newProjectId(new Date())].map(memory.roomOf) as [
    HashRoom,
    HashRoom,
    HashRoom,
  ];
  const noisy = fill(one);
  expect(noisy).toBeGreaterThan(total * 0.45);
  expect(noisy).toBeLessThanOrEqual(total / 2);
  expect(fill(other)).toBeGreaterThan(total * 0.35);
  expect(fill(third)).toBeGreaterThan(total * 0.08);

  const set = createHashSet(roomOf(total));
  for (let added = 0; added < 50_000; added++) set.add(`u${added}`);
  expect(set.bytes() / 50_000).toBeLessThan(12.5);
});
