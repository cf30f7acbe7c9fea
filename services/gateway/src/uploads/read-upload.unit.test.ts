import { lineLimits } from "@herald/contracts";
import type { FileLine } from "@herald/kit";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { splitLines } from "./read-upload.ts";

const cut = (bytes: Buffer, size: number): Buffer[] =>
  Array.from({ length: Math.ceil(bytes.length / size) }, (_, at) => bytes.subarray(at * size, (at + 1) * size));

const linesOf = async (file: string | Buffer, { quoted = false, size = 7 } = {}): Promise<FileLine[]> => {
  const source = async function* () {
    yield* cut(Buffer.from(file), size);
  };
  const lines: FileLine[] = [];
  for await (const some of splitLines(source(), quoted, async () => {})) lines.push(...some);
  return lines;
};
const texts = async (...given: Parameters<typeof linesOf>) =>
  (await linesOf(...given)).map((line) => ("text" in line ? line.text : line.problem));

describe("a file is cut into lines", () => {
  test("with any line break, with blank lines, and without a last line break", async () => {
    expect(await texts("one\r\ntwo\n\n\nthree")).toEqual(["one", "two", "", "", "three"]);
    expect(await texts("one\n")).toEqual(["one"]);
    expect(await texts("")).toEqual([]);
  });

  test("without its byte order mark, however it arrives", async () => {
    expect(await texts("\ufefftoken\né", { size: 100 })).toEqual(["token", "é"]);
  });

  test("in any pieces", async () => {
    const line = fc.stringMatching(/^[a-zé",]{0,12}$/);
    await fc.assert(
      fc.asyncProperty(fc.array(line, { maxLength: 20 }), fc.integer({ min: 1, max: 9 }), async (lines, size) => {
        expect(await texts(`${lines.join("\n")}\n`, { size })).toEqual(lines.length === 0 ? [""] : lines);
      }),
    );
  });

  test("rows of CSV keep the line breaks of quoted cells", async () => {
    const rows = ['a,"b\nc"', 'd,"e ""f""\r\ng"', "h"];
    for (const size of [1, 2, 5, 100]) expect(await texts(rows.join("\n"), { quoted: true, size })).toEqual(rows);
  });

  test("and a line that is not UTF-8 spoils no other", async () => {
    expect(await texts(Buffer.concat([Buffer.from("a\n"), Buffer.from([0xe9, 10]), Buffer.from("b")]))).toEqual([
      "a",
      "not-utf8",
      "b",
    ]);
  });

  test("and a line that is too long, or a quote that is not closed, is one line", async () => {
    const long = "x".repeat(lineLimits.bytes + 1);
    expect(await texts(`a\n${long}\nb\n${long}`, { size: 1_000 })).toEqual(["a", "too-long", "b", "too-long"]);
    const open = `a\n"${"x\n".repeat(40_000)}\nb`;
    const rows = await texts(open, { quoted: true, size: 1_000 });
    expect(rows.slice(0, 2)).toEqual(["a", "too-long"]);
    expect(rows.at(-1)).toBe("b");
  });
});

test("UTF-16 is refused as a whole", async () => {
  await expect(linesOf(Buffer.from("\ufefftoken", "utf16le"), { size: 100 })).rejects.toMatchObject({
    code: "unsupported-media-type",
  });
});

test("a file of nothing but blank or endless lines is refused before it is read to its end", async () => {
  for (const piece of [Buffer.alloc(65_536, 10), Buffer.alloc(65_536, 0)]) {
    let read = 0;
    const endless = async function* () {
      for (; read < 100_000; read++) yield piece;
    };
    const reading = async () => {
      for await (const _ of splitLines(endless(), false, async () => {}));
    };
    await expect(reading()).rejects.toMatchObject({ code: "body-too-large" });
    expect(read).toBeLessThan(2_000);
  }
});
