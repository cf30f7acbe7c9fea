import { request } from "node:http";
import { gzipSync } from "node:zlib";
import { Herald, type Import } from "@herald/client";
import { eventually } from "@herald/testing";
import { describe, expect } from "vitest";
import { apnsToken, type Project } from "./harness/project.ts";
import { test } from "./harness/shared-system.ts";
import { logOnFailure, type System } from "./harness/system.ts";

let system: System;
test.beforeAll(async ({ system: shared }) => {
  system = shared;
});
logOnFailure(() => system);

const newProject = async () => {
  const project = await system.project();
  const herald = new Herald({ url: system.gateway, token: project.token });
  return { project, herald };
};

/** Lines of an import file with `count` new devices. Herald stores 500 lines at a time. */
const devices = (count: number, rest: object = {}) =>
  Array.from({ length: count }, () =>
    JSON.stringify({ token: apnsToken(), platform: "ios", topics: ["news"], ...rest }),
  );

/** One raw upload: the client would retry after some of these answers, and sends bytes only as a Blob. */
const put = async ({ token }: Project, id: string, body: string | Buffer, query = "") => {
  const response = await fetch(`${system.gateway}/api/v1/imports/${id}/content${query}`, {
    method: "PUT",
    headers: { authorization: `Bearer ${token}`, "content-type": "application/x-ndjson" },
    body: typeof body === "string" ? body : new Uint8Array(body),
  });
  return { status: response.status, body: (await response.json()) as { data: Import; type?: string; detail?: string } };
};

const completed = (herald: Herald, id: string) =>
  eventually(
    async () => {
      const found = await herald.imports.get(id);
      expect(found.status).toBe("completed");
      return found;
    },
    { timeoutMs: 60_000 },
  );

/** Imports a file and returns its report. */
const importFile = async (
  { herald }: Awaited<ReturnType<typeof newProject>>,
  file: string | Buffer<ArrayBuffer>,
  { dryRun = false, type }: { dryRun?: boolean; type?: string } = {},
) => {
  const { id } = await herald.imports.create({ format: "herald", dry_run: dryRun });
  await herald.imports.upload(id, () => new Blob([file]), { contentType: type });
  const report = await completed(herald, id);
  const errors = [];
  for await (const error of herald.imports.errors(id)) errors.push(error);
  return { report, errors };
};
const counts = ({ created, updated, unchanged, refused }: Import) => [created, updated, unchanged, refused];
const stored = async ({ herald }: Awaited<ReturnType<typeof newProject>>) =>
  (await herald.devices.list().page(1)).pagination.count;

describe("an import of devices", () => {
  test("creates devices, changes nothing in a dry run, and finds all unchanged when repeated", async () => {
    const world = await newProject();
    const file = `${devices(603).join("\n")}\n`;
    expect(counts((await importFile(world, file, { dryRun: true })).report)).toEqual([603, 0, 0, 0]);
    expect(await stored(world)).toBe(0);
    const { report } = await importFile(world, gzipSync(file));
    expect(report).toMatchObject({ lines_stored: 603, lines_processed: 603, created: 603, refused: 0 });
    expect(await stored(world)).toBe(603);
    expect(counts((await importFile(world, file)).report)).toEqual([0, 0, 603, 0]);
    expect(counts((await importFile(world, file, { dryRun: true })).report)).toEqual([0, 0, 603, 0]);
    expect((await world.herald.imports.list().page(1)).data).toHaveLength(4);
  });

  test("reports each bad line with its number and reason, and imports the others", async () => {
    const world = await newProject();
    const [one = "", two = "", three = ""] = devices(3);
    const lines = [
      one,
      "{",
      "",
      '{"token":"no","platform":"ios"}',
      Buffer.from([0xe9]),
      two,
      "x".repeat(70_000),
      one,
      '{"token":"t","platform":"android","user_id":"=cmd()"}',
      `${three.slice(0, 40)}`,
    ];
    const file = Buffer.concat(lines.flatMap((line) => [Buffer.from(line), Buffer.from("\n")])).subarray(0, -1);
    const { report, errors } = await importFile(world, file);
    expect(report).toMatchObject({ lines_stored: 10, created: 3, unchanged: 1, refused: 5, errors_left_out: 0 });
    expect(errors.map(({ line, field, reason }) => [line, field, reason])).toEqual([
      [2, "", expect.stringContaining("is not JSON")],
      [4, "token", expect.stringContaining("APNs")],
      [5, "", expect.stringContaining("is not UTF-8")],
      [7, "", expect.stringContaining("is longer than 65536 bytes")],
      [10, "", expect.stringContaining("is not JSON")],
    ]);
  });

  test("from CSV reads quoted cells and unescapes formulas", async () => {
    const world = await newProject();
    const file = `token,platform,user_id,metadata\r\n${apnsToken()},ios,'=ann,"{""note"":""a\r\nb""}"\r\n${apnsToken()},ios\r\n`;
    const { report, errors } = await importFile(world, file, { type: "text/csv" });
    expect(counts(report)).toEqual([1, 0, 0, 1]);
    expect(errors).toMatchObject([{ line: 3, reason: "has 2 cells where the header has 4" }]);
    const [device] = await world.project.devices();
    expect(device?.user_id).toBe("=ann");
  });

  test("of the same devices by two imports at once creates each device once", async () => {
    const world = await newProject();
    const file = devices(600).join("\n");
    const [first, second] = await Promise.all([importFile(world, file), importFile(world, file)]);
    expect(first.report.created + second.report.created).toBe(600);
    expect(first.report.unchanged + second.report.unchanged).toBe(600);
    expect(await stored(world)).toBe(600);
  });

  test("continues after a connection that breaks, and loses and repeats nothing", async () => {
    const world = await newProject();
    const lines = devices(1_300);
    const { id } = await world.herald.imports.create({ format: "herald" });
    const cut = request(`${system.gateway}/api/v1/imports/${id}/content`, {
      method: "PUT",
      headers: { authorization: `Bearer ${world.project.token}`, "content-type": "application/x-ndjson" },
    });
    cut.on("error", () => {});
    cut.write(`${lines.slice(0, 1_100).join("\n")}\n`);
    const { lines_stored: line } = await eventually(
      async () => {
        const found = await world.herald.imports.get(id);
        expect(found.lines_stored).toBeGreaterThan(0);
        return found;
      },
      { timeoutMs: 30_000 },
    );
    const closed = new Promise<void>((resolve) => cut.once("close", () => resolve()));
    cut.destroy();
    await closed;
    expect(line % 500).toBe(0);
    const wrong = await put(world.project, id, lines.join("\n"), "?after_line=1");
    expect(wrong.body).toMatchObject({ type: "/docs/errors#import-position-mismatch", status: 409 });
    await world.herald.imports.upload(id, () => lines.join("\n"));
    expect(counts(await completed(world.herald, id))).toEqual([1_300, 0, 0, 0]);
    expect(await stored(world)).toBe(1_300);
    const again = await put(world.project, id, lines.join("\n"));
    expect(again.body).toMatchObject({ type: "/docs/errors#import-completed", status: 409 });
  });

  test("keeps the complete lines of a truncated gzip file, and imports nothing from UTF-16 or a zip bomb", async () => {
    const { project, herald } = await newProject();
    const { id } = await herald.imports.create({ format: "herald" });
    const zipped = gzipSync(devices(1_400).join("\n"));
    const half = await put(project, id, zipped.subarray(0, zipped.length / 2));
    expect(half.status).toBe(400);
    expect(half.body.detail).toContain("ends in the middle");
    await eventually(async () =>
      expect(await herald.imports.get(id)).toMatchObject({ lines_stored: 500, status: "uploading" }),
    );

    const { id: other } = await herald.imports.create({ format: "herald" });
    expect((await put(project, other, Buffer.from("\ufefftoken", "utf16le"))).status).toBe(415);
    const bomb = await put(project, other, gzipSync(Buffer.alloc(128 * 1_048_576)));
    expect(bomb.status).toBe(413);
    expect(await herald.imports.get(other)).toMatchObject({ lines_stored: 0, status: "uploading" });
  });
});
