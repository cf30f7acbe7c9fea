import { afterEach, expect, test } from "vitest";
import { createHealth } from "../health.ts";
import { HeraldError } from "../herald-error.ts";
import { createLogger } from "../logger.ts";
import { createListener, startHealthServer } from "./create-listener.ts";
import { type HttpServer, startHttp } from "./start-http.ts";

let server: HttpServer | undefined;
afterEach(() => server?.stop(100));

const start = async (checks: Parameters<typeof createHealth>[0]) => {
  const lines: string[] = [];
  const log = createLogger({ service: "test", level: "info", destination: { write: (line) => lines.push(line) } });
  const health = createHealth(checks);
  server = await startHealthServer(health, log, { host: "127.0.0.1", port: 0 });
  const { address } = server;
  const get = async (path: string, method = "GET") => {
    const response = await fetch(address + path, { method });
    const text = await response.text();
    return { status: response.status, headers: response.headers, body: text === "" ? undefined : JSON.parse(text) };
  };
  return { get, lines, health };
};

test("/livez is 200 whatever the checks say, /readyz when all are well", async () => {
  let up = true;
  const { get } = await start({ database: () => up });
  expect(await get("/livez")).toMatchObject({ status: 200, body: { status: "alive" } });
  expect(await get("/readyz")).toMatchObject({ status: 200, body: { status: "ready" } });
  up = false;
  expect((await get("/livez")).status).toBe(200);
  const { status, headers, body } = await get("/readyz");
  expect(status).toBe(503);
  expect(headers.get("cache-control")).toBe("no-store");
  expect(body).toEqual({
    status: "not ready",
    failing: [{ check: "database", since: expect.stringMatching(/^\d{4}-/), reason: "it is unavailable" }],
  });
});

test("a stop takes readiness away before it takes the server away", async () => {
  const { get, health } = await start({});
  health.shuttingDown();
  expect((await get("/readyz")).status).toBe(503);
  expect((await get("/livez")).status).toBe(200);
});

test("probes are not logged above debug: they come every second", async () => {
  const { get, lines } = await start({ database: () => false });
  await get("/livez");
  await get("/readyz");
  await get("/other");
  await expect.poll(() => lines.map((line) => JSON.parse(line).route)).toEqual(["unmatched"]);
});

test("nothing else is served there, and nothing but GET", async () => {
  const { get } = await start({});
  expect((await get("/")).status).toBe(404);
  expect((await get("/readyz", "POST")).status).toBe(405);
  expect((await get("/readyz", "HEAD")).status).toBe(200);
});

test("an error that cannot be answered ends its request alone", async () => {
  const log = createLogger({ service: "test", level: "silent" });
  const serve = async ({ url }: { url?: string }) => {
    throw new HeraldError("route-not-found", "path: is unknown", url === "/bad" ? { headers: { "x-bad": "\n" } } : {});
  };
  server = await startHttp(createListener(log, serve), { host: "127.0.0.1", port: 0 });
  await expect(fetch(`${server.address}/bad`)).rejects.toThrow("fetch failed");
  expect((await fetch(`${server.address}/good`)).status).toBe(404);
});
