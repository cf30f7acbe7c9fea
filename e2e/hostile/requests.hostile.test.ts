import { once } from "node:events";
import type { Socket } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import { eventually } from "@herald/testing";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { inParallel } from "../harness/in-parallel.ts";
import { apnsToken, type Project, type Registered } from "../harness/project.ts";
import { logOnFailure, type System, startSystem } from "../harness/system.ts";
import { cpuFor } from "./cpu.ts";
import { show } from "./figures.ts";
import { heldBytes, strangersConnected, watchHeld } from "./held.ts";
import { latencyDuring, maxTicks } from "./latency.ts";
import { memoryOf } from "./memory.ts";
import { startOrdinary } from "./ordinary.ts";
import { scale } from "./scale.ts";
import { stranger } from "./stranger.ts";
import { wrongBodies } from "./wrong-bodies.ts";

/** The limits of an address in 10 seconds: the default ones, or a lower one for clients, because each kind of request must reach it. */
const limits = { clients: scale(600, 100), failures: 100 };

let system: System;
let project: Project;
let known: Registered;
beforeAll(async () => {
  system = await startSystem({
    env: {
      HERALD_GATEWAY_LIMIT_CLIENTS: String(limits.clients),
      HERALD_GATEWAY_LIMIT_FAILURES: String(limits.failures),
    },
  });
  project = await system.project();
  known = await project.register();
});
afterAll(() => system?.stop());
logOnFailure(() => system);

const made: (() => void)[] = [];
afterEach(() => {
  for (const close of made.splice(0)) close();
});

let addresses = 0;
/** A client at an address that is new to the gateway. */
const newStranger = () => {
  const one = stranger(system.gateway, `127.9.${Math.floor(addresses / 200)}.${(addresses++ % 200) + 1}`);
  made.push(one.close);
  return one;
};

const ntf = "ntf_06bq4ghm31tz5d2ns8y7k9w0ac";
const parameters = (count: number) => Array.from({ length: count }, () => "a").join("&");
const identification = (change: object) =>
  JSON.stringify({ project_id: project.id, identifier: apnsToken(), platform: "ios", ...change });
const bearer = (token: string) => ({ headers: { authorization: `Bearer ${token}` } });

test("queries of thousands of parameters are refused unread", async ({ task }) => {
  const count = scale(200, 10);
  const costs: Record<string, number> = {};
  for (const path of ["/api/v1/webpush-key", `/api/v1/notifications/${ntf}/open`, "/openapi.json", "/api/v1/nothing"]) {
    const one = newStranger();
    const cost = await cpuFor(system, "gateway", count, () => one.flood(count, "GET", `${path}?${parameters(7_900)}`));
    costs[`ms of CPU, GET ${path.replace(ntf, "…")}`] = cost;
  }
  show(task, { "requests of each": count, parameters: 7_900, ...costs });
  expect(Math.max(...Object.values(costs))).toBeLessThan(50);
  const refused = await newStranger().ask("GET", `/api/v1/webpush-key?${parameters(51)}`);
  expect(JSON.parse(refused.text).errors).toEqual(["query: may have at most 50 parameters"]);
});

test("requests without a credential are limited by address", async ({ task }) => {
  const body = (text: string) => ({ body: text });
  const open = `/api/v1/notifications/${ntf}/open`;
  const kinds: Record<string, [method: string, path: string, asked?: object]> = {
    "unknown path": ["GET", "/api/v1/nothing"],
    "unknown path of 15 KiB": ["GET", `/${"%41/".repeat(3_700)}`],
    "wrong method": ["DELETE", "/api/v1/devices"],
    OPTIONS: ["OPTIONS", "/api/v1/devices"],
    "no token": ["GET", "/api/v1/devices"],
    "bad token": ["GET", "/api/v1/devices", bearer(`hpt_${"a".repeat(46)}`)],
    "bad admin token": ["GET", "/admin/v1/projects", bearer("a".repeat(40))],
    "HEAD without token": ["HEAD", "/api/v1/events"],
    "path written otherwise": ["GET", "/api/v1/d%65vices/"],
    "oversized query": ["GET", `/api/v1/webpush-key?${parameters(500)}`],
    "invalid query": ["GET", "/api/v1/webpush-key?project=1"],
    "invalid body": ["PUT", "/api/v1/identification", body('{"a":')],
    "identification invalid": ["PUT", "/api/v1/identification", body(identification({ platform: "tv" }))],
    "metadata invalid": ["PATCH", "/api/v1/metadata", body(JSON.stringify({ metadata: 1, identifier: 1 }))],
    "forged open": ["PUT", open, body(JSON.stringify({ project_id: project.id, token: "forged" }))],
    "open with an invalid body": ["PUT", open, body("[]")],
    documents: ["GET", "/openapi.json"],
    pages: ["GET", "/docs"],
  };
  // Preflights of opens and probes are always answered, because a refusal would cost as much.
  const free: typeof kinds = {
    "preflight of an open": ["OPTIONS", open],
    probe: ["GET", "/livez"],
  };
  const figures: Record<string, number> = {};
  const uncounted: string[] = [];
  const count = scale(2, 1.5) * limits.clients;
  for (const [name, [method, path, asked]] of Object.entries({ ...kinds, ...free })) {
    const one = newStranger();
    let came: Record<number, number> = {};
    const begun = performance.now();
    await one.flood(20, method, path, asked); // compiles the code before the measurement
    figures[name] = await cpuFor(system, "gateway", count, async () => {
      came = await one.flood(count, method, path, asked);
    });
    const refused = came[429] ?? 0;
    // A slow machine may need more than one window of ten seconds.
    const windows = Math.floor((performance.now() - begun) / 10_000) + 1;
    if (name in free ? refused > 0 : refused < count - windows * limits.clients)
      uncounted.push(`${name}: ${JSON.stringify(came)}`);
  }
  show(task, {
    requests: count,
    ...Object.fromEntries(Object.entries(figures).map(([name, ms]) => [`ms of CPU, ${name}`, ms])),
  });
  expect(uncounted).toEqual([]);
  // Only the refused address is limited: a client with a valid token is served.
  expect((await newStranger().ask("GET", "/api/v1/devices", bearer(project.token))).status).toBe(200);
});

test("anonymous requests at an address's limit do not slow others", async ({ task }) => {
  const friend = newStranger();
  const ask = () => friend.ask("GET", "/api/v1/devices?per_page=1", bearer(project.token));
  const quietMs = scale(10_000, 1_000);
  const { dispatch } = system.services;
  const quiet = await latencyDuring(ask, () => delay(quietMs), dispatch);
  const large = identification({
    metadata: Object.fromEntries(Array.from({ length: 6_000 }, (_, i) => [`k${i}`, [i]])),
  });
  const kinds: Record<string, [method: string, path: string, asked?: object]> = {
    "oversized query": ["GET", `/api/v1/webpush-key?${parameters(7_900)}`],
    "large identification": ["PUT", "/api/v1/identification", { body: large }],
    "unknown path": ["GET", `/${"%41/".repeat(3_700)}`],
  };
  const found: Record<string, number> = { "ms p99, quiet": quiet.p99 };
  const waits: Record<string, number> = {};
  for (const [name, [method, path, asked]] of Object.entries(kinds)) {
    const attacker = newStranger();
    const flood = () => attacker.flood(scale(limits.clients, 60), method, path, asked);
    const { p99, ticks } = await latencyDuring(ask, flood, dispatch);
    found[`ms p99, ${name}`] = p99;
    waits[name] = ticks;
  }
  show(task, { ...found, "answers of another service during one, at most": Math.max(...Object.values(waits)) });
  expect(Math.max(...Object.values(waits)), JSON.stringify(waits)).toBeLessThan(maxTicks);
});

test("bodies with thousands of errors cost only their reading", async ({ task }) => {
  const bodies = wrongBodies(identification);
  const count = scale(20, 5);
  const figures: Record<string, number> = {};
  for (const [name, [route, body]] of Object.entries(bodies)) {
    const [method = "", path = ""] = route.split(" ");
    const authorization = path.includes("identification") ? {} : bearer(project.token);
    const one = newStranger();
    let came: Record<number, number> = {};
    figures[`ms of CPU, ${name}`] = await cpuFor(system, "gateway", count, async () => {
      came = await one.flood(count, method, path, { ...authorization, body });
    });
    expect(came, `${name} (${body.length} bytes)`).toEqual({ 422: count });
  }
  show(task, { "requests of each": count, ...figures });
  expect(Math.max(...Object.values(figures)), JSON.stringify(figures)).toBeLessThan(300);
});

/** The memory limit of the whole gateway process, including its idle memory. */
const memoryLimitMb = 512;
/** What the gateway may hold of bodies and answers. */
const heldLimitBytes = 64 * 2 ** 20;
const heldOfAddressBytes = 16 * 2 ** 20;
/** What the test's own requests may have open beside the attack. */
const ordinaryBytes = 2 ** 20;

const opened = async (count: number, begin: () => Socket): Promise<{ sockets: Socket[]; answers: string[] }> => {
  const answers: string[] = [];
  const sockets = await inParallel(
    Array.from({ length: count }, (_, index) => index),
    50,
    async () => {
      const socket = begin();
      socket.once("data", (chunk) => answers.push(chunk.toString("latin1")));
      await Promise.race([once(socket, "connect"), once(socket, "close")]);
      return socket;
    },
  );
  made.push(() => {
    for (const socket of sockets) socket.destroy();
  });
  return { sockets, answers };
};

test("endless bodies: memory is bounded, and others are served", async ({ task }) => {
  // More than the gateway may have open, with more bytes than it may hold, by more addresses than one may have of either.
  const connections = scale(4_500, 2_250);
  const before = await memoryOf(system, "gateway");
  const ordinary = startOrdinary(project, known.device.id);
  const attackers = Array.from({ length: scale(5, 20) }, newStranger);
  const bytes = 127 * 1024;
  const head = `PUT /api/v1/identification HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: ${bytes + 100}\r\n\r\n`;
  const half = Buffer.from(`${head}"${"a".repeat(bytes)}`);
  let next = 0;
  const { answers } = await opened(connections, () => {
    const socket = (attackers[next++ % attackers.length] as (typeof attackers)[number]).open();
    socket.write(half);
    return socket;
  });
  const watch = watchHeld(system);
  await delay(scale(5_000, 2_000));
  const { max, held } = await watch.stop();
  const { done, failed } = await ordinary.stop();
  show(task, {
    connections,
    "MB sent": Math.round((connections * bytes) / 2 ** 20),
    "MB before": before,
    "MB at most": max,
    "bytes held at most": held,
    "answers 408, 429, 503": answers.length,
    "ordinary sends meanwhile": done,
  });
  expect(failed).toEqual([]);
  expect(max).toBeLessThan(memoryLimitMb);
  expect(held).toBeLessThanOrEqual(heldLimitBytes + ordinaryBytes);
  expect(answers.filter((text) => !/^HTTP\/1\.1 (408|429|503) /.test(text))).toEqual([]);
  for (const close of made.splice(0)) close();
  await eventually(async () => expect(await heldBytes(system)).toBe(0), { timeoutMs: 60_000 });
});

test("unread responses: memory is bounded, and they are cut off", async ({ task }) => {
  // Five addresses reach the limit of the gateway, one reaches its own. The kernel holds the first megabytes of a connection.
  const [connections, from] = [scale(300, 40), scale(5, 1)];
  const mayHold = scale(heldLimitBytes, heldOfAddressBytes) + ordinaryBytes;
  const pages = 12;
  const reader = await system.project("Slow reader");
  // A page of these is half a megabyte.
  const metadata = Object.fromEntries(Array.from({ length: 20 }, (_, key) => [`key${key}`, "m".repeat(250)]));
  await inParallel(Array.from({ length: 100 }), 8, () => reader.register({ metadata }));
  const before = await memoryOf(system, "gateway");
  const ordinary = startOrdinary(project, known.device.id);
  const attackers = Array.from({ length: from }, newStranger);
  const page = `GET /api/v1/devices?per_page=100 HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${reader.token}\r\n\r\n`;
  const watch = watchHeld(system);
  // Four at a time: the attack targets the memory of the gateway, not the service that builds the pages.
  await inParallel(Array.from({ length: connections }), 4, async (_, index) => {
    const socket = (attackers[index % attackers.length] as (typeof attackers)[number]).open();
    made.push(() => socket.destroy());
    socket.write(page.repeat(pages));
    // Reads one chunk and nothing more.
    await Promise.race([once(socket, "readable"), once(socket, "close")]);
  });
  const { max, held } = await watch.stop();
  const { done, failed } = await ordinary.stop();
  show(task, {
    connections,
    "MB asked for": Math.round((connections * pages * 100 * 5_500) / 2 ** 20),
    "MB before": before,
    "MB at most": max,
    "KB a connection": Math.round(((max - before) * 1024) / connections),
    "bytes held at most": held,
    "ordinary sends meanwhile": done,
  });
  expect(max).toBeLessThan(memoryLimitMb);
  expect(held).toBeLessThanOrEqual(mayHold);
  expect(failed).toEqual([]);
  // No client reads another byte, and the gateway closes all connections.
  await eventually(async () => expect(await strangersConnected(system)).toBe(0), { timeoutMs: 90_000 });
  await eventually(async () => expect(await heldBytes(system)).toBe(0), { timeoutMs: 90_000 });
});

test("HEAD of a stream and aborted clients release everything", async ({ task }) => {
  const own = await system.project("Streams");
  const one = newStranger();
  const heads = await one.flood(60, "HEAD", "/api/v1/events", bearer(own.token));
  expect(heads).toEqual({ 200: 60 });
  // Each client leaves before the answer: to a stream, to a body, to a request to another service.
  const begun = [
    `GET /api/v1/events HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${own.token}\r\n\r\n`,
    `GET /api/v1/devices HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${own.token}\r\n\r\n`,
    `POST /api/v1/devices HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${own.token}\r\nContent-Type: application/json\r\nContent-Length: 90000\r\n\r\n{"`,
    `POST /api/v1/devices HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${own.token}\r\nContent-Type: application/json\r\nContent-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nabc`,
  ];
  const leavers = scale(400, 100);
  for (const bytes of begun)
    await inParallel(Array.from({ length: leavers }), 15, async (_, index) => {
      const socket = one.open();
      await once(socket, "connect");
      // Half of the clients leave at once, half after the gateway has begun.
      const written = new Promise((resolve) => socket.write(bytes, resolve));
      if (index % 2 === 0) await written;
      socket.destroy();
    });
  const streams: Socket[] = [];
  made.push(() => {
    for (const socket of streams) socket.destroy();
  });
  // The project can open as many streams as it may have.
  await eventually(async () => {
    const socket = one.open();
    socket.write(begun[0] as string);
    const [first] = await once(socket, "data");
    if (String(first).startsWith("HTTP/1.1 200 ")) streams.push(socket);
    else socket.destroy();
    expect(streams.length, String(first)).toBeGreaterThanOrEqual(20);
  });
  await eventually(async () => expect(await heldBytes(system)).toBe(0), { timeoutMs: 60_000 });
  show(task, { HEADs: 60, "requests broken off": leavers * begun.length, "streams open at the end": streams.length });
});
