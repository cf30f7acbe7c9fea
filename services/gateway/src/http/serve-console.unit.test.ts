import { once } from "node:events";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { brotliCompressSync, gzipSync } from "node:zlib";
import { createHttpApp, createLogger, serveRoutes } from "@herald/kit";
import { afterAll, beforeAll, expect, test } from "vitest";
import { consolePolicy, consoleRoutes } from "./serve-console.ts";

let folder: string;
let server: Server;
let counted = 0;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "herald-console-"));
  await mkdir(join(folder, "built/assets"), { recursive: true });
  await writeFile(join(folder, "built/index.html"), "<p>page</p>");
  await writeFile(join(folder, "built/assets/main-1a2b.js"), "let a");
  await writeFile(join(folder, "built/assets/main-1a2b.js.gz"), gzipSync("let a"));
  await writeFile(join(folder, "built/assets/main-1a2b.js.br"), brotliCompressSync("let a"));
  await writeFile(join(folder, "secret.txt"), "secret");
  const routes = consoleRoutes(join(folder, "built"), async () => {
    counted++;
  });
  const log = createLogger({ service: "console", level: "silent" });
  server = createServer(createHttpApp(log, serveRoutes(routes, { notFound: "route not found" }))).listen(
    0,
    "127.0.0.1",
  );
  await once(server, "listening");
});

afterAll(async () => {
  server.close();
  await rm(folder, { recursive: true });
});

const get = (path: string, headers: Record<string, string> = {}) =>
  fetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}${path}`, { headers });

test.each(["/console", "/console/", "/console/p/prj_1/devices/dev_1"])("%s is the page", async (path) => {
  const response = await get(path);
  expect(await response.text()).toBe("<p>page</p>");
  expect(response.headers.get("content-security-policy")).toBe(consolePolicy);
  expect(response.headers.get("cache-control")).toBe("no-cache");
});

test("a file whose name contains its hash is kept by browsers, compressed where they take it", async () => {
  const plain = await get("/console/assets/main-1a2b.js", { "accept-encoding": "identity" });
  expect([plain.headers.get("content-encoding"), await plain.text()]).toEqual([null, "let a"]);
  for (const [accepted, coding] of [
    ["gzip, deflate, br", "br"],
    ["gzip, br;q=0", "gzip"],
  ] as const) {
    const packed = await get("/console/assets/main-1a2b.js", { "accept-encoding": accepted });
    expect([packed.headers.get("content-encoding"), await packed.text()]).toEqual([coding, "let a"]);
    expect(packed.headers.get("content-type")).toBe("text/javascript; charset=utf-8");
    expect(packed.headers.get("cache-control")).toContain("immutable");
  }
});

test.each<Record<string, string>>([
  { "if-match": "*" },
  { "if-match": '"x"' },
  { "if-unmodified-since": "Thu, 01 Jan 1970 00:00:00 GMT" },
])("a file has no state that %j could name", async (headers) => {
  for (const path of ["/console", "/console/assets/main-1a2b.js"]) expect((await get(path, headers)).status).toBe(200);
});

test.each(["/console/..%2fsecret.txt", "/console/assets/..%2f..%2fsecret.txt", "/console/%2e%2e/secret.txt"])(
  "%s leads to no other file",
  async (path) => {
    expect(await (await get(path)).text()).not.toContain("secret\n");
    expect(await (await get(path)).text()).not.toBe("secret");
  },
);

test("a file that is not there is a 404, and each request is counted", async () => {
  const before = counted;
  const response = await get("/console/assets/gone.js");
  expect(response.status).toBe(404);
  expect(((await response.json()) as { errors: string[] }).errors).toEqual(["path: file not found"]);
  expect(counted).toBe(before + 1);
});
