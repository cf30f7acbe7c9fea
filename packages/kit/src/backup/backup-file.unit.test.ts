import { randomBytes } from "node:crypto";
import { PassThrough, Readable } from "node:stream";
import { buffer } from "node:stream/consumers";
import { gzipSync } from "node:zlib";
import { expect, test } from "vitest";
import { version } from "../version.ts";
import { type BackupHeader, readBackup, writeBackup } from "./backup-file.ts";

const header: BackupHeader = { herald: version, part: "registry", at: "2030-01-31T09:00:00.000Z", keys: ["k1"] };

const fileOf = async (frames: readonly Uint8Array[], of = header): Promise<Buffer> => {
  const out = new PassThrough();
  const whole = buffer(out);
  await writeBackup(
    out,
    of,
    (async function* () {
      yield* frames;
    })(),
  );
  out.end();
  return whole;
};
const read = async (file: Uint8Array, part = "registry") => {
  const { header, frames } = await readBackup(Readable.from([file]), part);
  return { header, frames: await Readable.from(frames).toArray() };
};

test("a backup is read as it was written", async () => {
  const frames = [randomBytes(1), randomBytes(300_000), randomBytes(17)];
  expect(await read(await fileOf(frames))).toEqual({ header, frames });
  expect(await read(await fileOf([]))).toEqual({ header, frames: [] });
});

test.each<[string, () => Promise<Uint8Array>, string]>([
  [
    "another part's",
    () => fileOf([], { ...header, part: "dispatch" }),
    "this is a backup of dispatch, not of registry",
  ],
  ["a newer Herald's", () => fileOf([], { ...header, herald: "99.0.0" }), "Herald 99.0.0 made this backup"],
  ["no gzip", async () => Buffer.from("hello"), "the file is not a backup of Herald"],
  ["another gzip", async () => gzipSync("hello, this is text"), "the file is not a backup of Herald"],
  ["nothing", async () => Buffer.alloc(0), "the file is not a backup of Herald"],
  ["without its end", async () => gzipSync(Buffer.from([9, 0, 0, 0, 1])), "the file is torn"],
])("refuses %s", async (_, file, problem) => {
  await expect(file().then((bytes) => read(bytes))).rejects.toThrow(problem);
});

test("refuses a file of which the end is missing, wherever it was cut", async () => {
  const whole = await fileOf([randomBytes(10_000), randomBytes(10_000)]);
  for (const share of [0.3, 0.6, 0.999])
    await expect(read(whole.subarray(0, Math.floor(whole.length * share)))).rejects.toThrow(/torn|unexpected end/);
});
