import { gzipSync } from "node:zlib";
import { expect, test } from "vitest";
import { readFirstRecipient, uploadTypeOf } from "./read-file.ts";

const fileOf = (name: string, content: string | Buffer<ArrayBuffer>) => new File([content], name);
const ann = { target: "user:ann", variables: { number: "2041", name: 'Ann, "A."' } };

test.each([
  ["CSV with quotes", fileOf("a.csv", '\uFEFFtarget,number,name\r\nuser:ann,2041,"Ann, ""A."""\r\nuser:bea,1,B\r\n')],
  ["CSV with semicolons", fileOf("a.CSV", 'target;number;name\n\nuser:ann;2041;"Ann, ""A."""')],
  ["CSV with tabs", fileOf("a.csv", 'number\tname\ttarget\n2041\t"Ann, ""A."""\tuser:ann\n')],
  ["gzip", fileOf("a.csv.gz", gzipSync('target,number,name\nuser:ann,2041,"Ann, ""A."""\n'))],
  ["NDJSON", fileOf("a.ndjson", `\n${JSON.stringify(ann)}\n{`)],
])("reads the first recipient of %s", async (_, file) => {
  expect(await readFirstRecipient(file)).toEqual(ann);
});

test("reads the beginning of a large file alone", async () => {
  let pulled = 0;
  const line = "target,n\nuser:ann,1\n".padEnd(65_536, "x");
  const stream = new ReadableStream<Uint8Array>({
    pull: (controller) => {
      pulled++;
      controller.enqueue(new TextEncoder().encode(line));
    },
  });
  const file = Object.assign(fileOf("a.csv", "ta"), { stream: () => stream });
  expect(await readFirstRecipient(file)).toEqual({ target: "user:ann", variables: { n: "1" } });
  expect(pulled).toBeLessThan(5);
});

test.each([
  ["a.csv", "", "is empty"],
  ["a.csv", "user,n\nuser:ann,1\n", "must name the columns"],
  ["a.csv", "target,n\n", "no recipients"],
  ["a.csv", "target,n\nann,1\n", "“ann”, must be written as user:<id>"],
  ["a.csv", "t\0a\0", "UTF-8"],
  ["a.ndjson", "target,n\nuser:ann,1\n", "no JSON object"],
  ["a.ndjson", '{"target":"topic:news"}', "“topic:news”, must be"],
])("says what is wrong with %s: %j", async (name, content, words) => {
  expect(await readFirstRecipient(fileOf(name, content))).toContain(words);
});

test("the name says what a file is", () => {
  expect(["a.csv", "a.csv.gz", "a.ndjson", "a.jsonl.gz"].map((name) => uploadTypeOf(fileOf(name, "")))).toEqual([
    ...["text/csv", "text/csv", "application/x-ndjson", "application/x-ndjson"],
  ]);
});
