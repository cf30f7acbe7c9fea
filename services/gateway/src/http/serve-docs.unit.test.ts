import { once } from "node:events";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { createHttpApp, createLogger } from "@herald/kit";
import { afterAll, beforeAll, expect, test } from "vitest";
import { serveGateway } from "./http-routes.ts";

let folder: string;
let server: Server;
let counted = 0;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "herald-docs-"));
  await mkdir(join(folder, "docs"));
  const files = { "openapi.json": "{}", "docs.html": "<p>all</p>", "docs/errors.html": "<p>errors</p>" };
  for (const [name, text] of Object.entries(files)) {
    await writeFile(join(folder, name), text);
    await writeFile(join(folder, `${name}.gz`), gzipSync(text));
  }
  await writeFile(join(folder, "policy.txt"), "script-src 'self'");
  const count = async () => void counted++;
  const log = createLogger({ service: "docs", level: "silent" });
  server = createServer(createHttpApp(log, serveGateway([], [], count, { docs: folder }))).listen(0, "127.0.0.1");
  await once(server, "listening");
});

afterAll(async () => {
  server.close();
  await rm(folder, { recursive: true });
});

const get = (path: string, headers: Record<string, string> = {}) =>
  fetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}${path}`, { headers });

test.each([
  ["/docs", "<p>all</p>"],
  ["/docs/errors", "<p>errors</p>"],
])("%s is a page with a policy of its own, which caches keep for a while", async (path, text) => {
  const response = await get(path);
  expect(await response.text()).toBe(text);
  expect(Object.fromEntries(response.headers)).toMatchObject({
    "content-type": "text/html; charset=utf-8",
    "content-security-policy": "script-src 'self'",
    "cache-control": "public, max-age=300",
    vary: "accept-encoding",
  });
});

test("a document for tools may be read by a page of any site", async () => {
  const response = await get("/openapi.json");
  expect(await response.json()).toEqual({});
  expect(response.headers.get("content-type")).toBe("application/json; charset=utf-8");
  expect(response.headers.get("access-control-allow-origin")).toBe("*");
});

test("a page is compressed where the client takes it", async () => {
  const packed = await get("/docs", { "accept-encoding": "br, gzip" });
  expect([packed.headers.get("content-encoding"), await packed.text()]).toEqual(["gzip", "<p>all</p>"]);
  const plain = await get("/docs", { "accept-encoding": "identity" });
  expect([plain.headers.get("content-encoding"), await plain.text()]).toEqual([null, "<p>all</p>"]);
});

test("a file that is not there is a 404 that says how to build it, and each request is counted", async () => {
  const before = counted;
  const response = await get("/asyncapi.json");
  expect(response.status).toBe(404);
  expect(((await response.json()) as { errors: string[] }).errors).toEqual([
    "path: the documentation is not built; `npm run build` makes it",
  ]);
  expect(counted).toBe(before + 1);
});
