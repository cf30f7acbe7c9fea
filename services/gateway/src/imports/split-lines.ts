import { isUtf8 } from "node:buffer";
import { importLimits } from "@herald/contracts";
import { HeraldError } from "@herald/kit";

/** A line of a file, or why it cannot be read. */
export type FileLine = { readonly text: string } | { readonly problem: "too-long" | "not-utf8" };

const [newline, quote, carriageReturn] = Buffer.from('\n"\r') as unknown as [number, number, number];
/** A blank line costs as much time as this many bytes of other lines. */
const blankLineBytes = 64;
const utf8Mark = Buffer.from([0xef, 0xbb, 0xbf]);

const isUtf16 = (first: Buffer): boolean =>
  (first[0] === 0xff && first[1] === 0xfe) || (first[0] === 0xfe && first[1] === 0xff);

const hasOddQuotes = (bytes: Buffer): boolean => {
  let odd = false;
  for (let at = bytes.indexOf(quote); at >= 0; at = bytes.indexOf(quote, at + 1)) odd = !odd;
  return odd;
};

const lineOf = (bytes: Buffer): FileLine => {
  const end = bytes.at(-1) === carriageReturn ? bytes.length - 1 : bytes.length;
  const line = bytes.subarray(0, end);
  return isUtf8(line) ? { text: line.toString() } : { problem: "not-utf8" };
};

/**
 * Cuts a file into lines and holds no more than one of them. With `quoted` a line is a row of CSV, whose quoted cells may contain line breaks. A last
 * line without a line break counts too.
 * @throws HeraldError `unsupported-media-type` for UTF-16, `body-too-large` for a file that is mostly blank or too long lines.
 */
export async function* splitLines(source: AsyncIterable<Buffer>, quoted: boolean): AsyncGenerator<FileLine[]> {
  let parts: Buffer[] = [];
  let bytes = 0;
  let junk = 0;
  let isOpen = false;
  let isSkipping = false;
  let isFirst = true;

  const waste = (wasted: number) => {
    junk += wasted;
    if (junk > importLimits.junkBytes)
      throw new HeraldError(
        "body-too-large",
        `body: more than ${importLimits.junkBytes} bytes of it are blank lines, or lines longer than ${importLimits.lineBytes} bytes`,
      );
  };
  const take = (): FileLine => {
    const whole = parts.length === 1 ? (parts[0] as Buffer) : Buffer.concat(parts, bytes);
    parts = [];
    bytes = 0;
    return lineOf(whole);
  };
  const add = (part: Buffer): void => {
    if (isSkipping) {
      waste(part.length);
      return;
    }
    parts.push(part);
    bytes += part.length;
    if (bytes <= importLimits.lineBytes) return;
    waste(bytes);
    parts = [];
    bytes = 0;
    isSkipping = true;
    isOpen = false;
  };

  for await (const given of source) {
    let chunk = given;
    if (isFirst && chunk.length > 0) {
      isFirst = false;
      if (isUtf16(chunk)) throw new HeraldError("unsupported-media-type", "body: must be UTF-8; this is UTF-16");
      if (chunk.subarray(0, 3).equals(utf8Mark)) chunk = chunk.subarray(3);
    }
    const lines: FileLine[] = [];
    for (let start = 0; start < chunk.length; ) {
      const found = chunk.indexOf(newline, start);
      const end = found < 0 ? chunk.length : found;
      const segment = chunk.subarray(start, end);
      if (quoted && !isSkipping && hasOddQuotes(segment)) isOpen = !isOpen;
      const goesOn = found < 0 || isOpen;
      add(goesOn && found >= 0 ? chunk.subarray(start, end + 1) : segment);
      start = end + 1;
      if (found < 0 || isOpen) continue;
      if (isSkipping) {
        isSkipping = false;
        lines.push({ problem: "too-long" });
        continue;
      }
      if (bytes <= 1) waste(blankLineBytes);
      lines.push(take());
    }
    if (lines.length > 0) yield lines;
  }
  if (isSkipping) yield [{ problem: "too-long" }];
  else if (bytes > 0) yield [take()];
}
