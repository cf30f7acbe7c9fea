import { once } from "node:events";
import { readFile } from "node:fs/promises";
import type { Socket } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import { eventually } from "@herald/testing";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { inParallel } from "../harness/in-parallel.ts";
import { readMetrics } from "../harness/metrics.ts";
import { apnsToken, type Project, type Registered } from "../harness/project.ts";
import { logOnFailure, type System, startSystem } from "../harness/system.ts";
import { cpuFor } from "./cpu.ts";
import { show } from "./figures.ts";
import { memoryOf } from "./memory.ts";
import { startOrdinary } from "./ordinary.ts";
import { scale } from "./scale.ts";
import { stranger } from "./stranger.ts";

/** What an address is allowed in 10 seconds unless the operator says otherwise. */
const limits = { clients: 600, failures: 100 };

let system: System;
let project: Project;
let known: Registered;
beforeAll(async () => {
  system = await startSystem({
    env: {
      HERALD_GATEWAY_LIMIT_CLIENTS: String(limits.clients),
      HERALD_GATEWAY_LIMIT_FAILURES: String(limits.failures),
      HERALD_GATEWAY_LIMIT_STREAMS: "200",
      HERALD_GATEWAY_LIMIT_PROJECT_STREAMS: "20",
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
/** Somebody whom the gateway never heard of. */
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

test("queries of thousands of parameters: refused unread, for what any request costs", async ({ task }) => {
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

test("what comes without a credential: counted by its address, and its cost printed", async ({ task }) => {
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
  // Answered always, because a refusal would cost as much: what browsers ask before an open, and probes.
  const free: typeof kinds = {
    "preflight of an open": ["OPTIONS", open],
    probe: ["GET", "/livez"],
  };
  const figures: Record<string, number> = {};
  const uncounted: string[] = [];
  const count = 2 * limits.clients;
  for (const [name, [method, path, asked]] of Object.entries({ ...kinds, ...free })) {
    const one = newStranger();
    let came: Record<number, number> = {};
    await one.flood(20, method, path, asked); // compiles what is needed
    figures[name] = await cpuFor(system, "gateway", count, async () => {
      came = await one.flood(count, method, path, asked);
    });
    if (name in free ? (came[429] ?? 0) > 0 : (came[429] ?? 0) < count / 4)
      uncounted.push(`${name}: ${JSON.stringify(came)}`);
  }
  show(task, {
    requests: count,
    ...Object.fromEntries(Object.entries(figures).map(([name, ms]) => [`ms of CPU, ${name}`, ms])),
  });
  expect(uncounted).toEqual([]);
  // An address that was refused has lost its turn, not everybody's; a true token of the same address neither.
  expect((await newStranger().ask("GET", "/api/v1/devices", bearer(project.token))).status).toBe(200);
});

test("the cheapest requests without a credential, as many as an address may: others are as quick as before", async ({
  task,
}) => {
  const friend = newStranger();
  const latencies = async (during: () => Promise<unknown>) => {
    let going = true;
    const times: number[] = [];
    const watching = (async () => {
      while (going) {
        const begin = performance.now();
        const { status } = await friend.ask("GET", "/api/v1/devices?per_page=1", bearer(project.token));
        if (status === 200) times.push(performance.now() - begin);
      }
    })();
    await during();
    going = false;
    await watching;
    const sorted = times.toSorted((a, b) => a - b);
    return Math.round((sorted[Math.floor(sorted.length * 0.99)] ?? 0) * 10) / 10;
  };
  const quietMs = scale(10_000, 3_000);
  const quiet = await latencies(() => delay(quietMs));
  const large = identification({
    metadata: Object.fromEntries(Array.from({ length: 6_000 }, (_, i) => [`k${i}`, [i]])),
  });
  const kinds: Record<string, [method: string, path: string, asked?: object]> = {
    "oversized query": ["GET", `/api/v1/webpush-key?${parameters(7_900)}`],
    "large identification": ["PUT", "/api/v1/identification", { body: large }],
    "unknown path": ["GET", `/${"%41/".repeat(3_700)}`],
  };
  const found: Record<string, number> = { "ms p99, quiet": quiet };
  for (const [name, [method, path, asked]] of Object.entries(kinds)) {
    const attacker = newStranger();
    found[`ms p99, ${name}`] = await latencies(() => attacker.flood(scale(limits.clients, 60), method, path, asked));
  }
  show(task, found);
});

test("bodies with more wrong than can be said: refused at the cost of reading them", async ({ task }) => {
  const entries = (count: number, of: (index: number) => unknown) =>
    Object.fromEntries(Array.from({ length: count }, (_, index) => [`k${index}`, of(index)]));
  const list = (count: number, of: unknown) => Array.from({ length: count }, () => of);
  const send = (notification: object) =>
    JSON.stringify({ notification: { title: "x", targets: ["all"], ...notification } });
  const longCondition = `condition:${"'a' in topics && ".repeat(50_000)}`;
  const bodies: Record<string, [route: string, body: string]> = {
    "unknown fields": ["PUT /api/v1/identification", identification(entries(9_000, () => 0))],
    "a wide metadata": ["PUT /api/v1/identification", identification({ metadata: entries(9_000, () => 0) })],
    "a deep metadata": [
      "PUT /api/v1/identification",
      identification({ metadata: { a: { b: { c: { d: list(40_000, []) } } } } }),
    ],
    "a metadata of keys that may not be": [
      "PUT /api/v1/identification",
      identification({ metadata: { a: list(12_000, { $ne: 0 }) } }),
    ],
    "one key 9,000 times": ["PUT /api/v1/identification", `{${list(9_000, '"platform":1').join(",")}}`],
    "wrong targets": ["POST /api/v1/notifications", send({ targets: list(100_000, "a b") })],
    "targets of another type": ["POST /api/v1/notifications", send({ targets: list(300_000, 0) })],
    "a target of 850 KB": ["POST /api/v1/notifications", send({ targets: [longCondition] })],
    "wrong data": ["POST /api/v1/notifications", send({ data: entries(80_000, () => 0) })],
    "230 conditions": ["POST /api/v1/notifications", send({ targets: list(230, longCondition.slice(0, 3_740)) })],
    "wrong locales": ["POST /api/v1/notifications", send({ localizations: entries(60_000, () => ({})) })],
    "unknown fields of a send": ["POST /api/v1/notifications", send(entries(80_000, () => 0))],
    "wrong devices": ["PUT /api/v1/topics/news/devices", JSON.stringify({ devices: list(120_000, "dev_") })],
    "wrong topics": [
      "POST /api/v1/devices",
      JSON.stringify({ device: { token: apnsToken(), platform: "ios", topics: list(120_000, "a b") } }),
    ],
  };
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

/** Reads a gauge of the gateway's. */
const gauge = async (name: string): Promise<number> => {
  const text = await readMetrics(system.services.gateway.metrics);
  return Number(new RegExp(`^${name}(?:\\{[^}]*\\})? (\\S+)$`, "m").exec(text)?.[1] ?? Number.NaN);
};

/** What the whole gateway may take of a machine's memory, with what it is without any attack. */
const memoryLimitMb = 512;

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

test("bodies that never end: what is held of them is bounded, and others are served", async ({ task }) => {
  const connections = scale(4_500, 4_500);
  const before = await memoryOf(system, "gateway");
  const ordinary = startOrdinary(project, known.device.id);
  const attackers = Array.from({ length: 5 }, newStranger);
  const bytes = 127 * 1024;
  const head = `PUT /api/v1/identification HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: ${bytes + 100}\r\n\r\n`;
  const half = Buffer.from(`${head}"${"a".repeat(bytes)}`);
  let next = 0;
  const { answers } = await opened(connections, () => {
    const socket = (attackers[next++ % attackers.length] as (typeof attackers)[number]).open();
    socket.write(half);
    return socket;
  });
  let max = 0;
  let held = 0;
  for (let look = 0; look < 20; look++) {
    max = Math.max(max, await memoryOf(system, "gateway"));
    held = Math.max(held, await gauge("herald_http_memory_bytes"));
    await delay(250);
  }
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
  expect(answers.filter((text) => !/^HTTP\/1\.1 (408|429|503) /.test(text))).toEqual([]);
  for (const close of made.splice(0)) close();
  await eventually(async () => expect(await gauge("herald_http_memory_bytes")).toBe(0), { timeoutMs: 60_000 });
});

/** Connections of strangers that the gateway has open, as Linux lists them: `127.9.…` begins from the back, 01 is established. */
const strangersConnected = async (): Promise<number> => {
  const port = Number(new URL(system.gateway).port).toString(16).toUpperCase().padStart(4, "0");
  const tables = await Promise.all(["tcp", "tcp6"].map((name) => readFile(`/proc/net/${name}`, "utf8")));
  return tables.join("").match(new RegExp(`:${port} [0-9A-F]*097F:[0-9A-F]{4} 01 `, "g"))?.length ?? 0;
};

test("answers that are not read: what is held of them is bounded, and they are cut off", async ({ task }) => {
  const connections = scale(300, 100);
  const pages = 12;
  const reader = await system.project("Slow reader");
  // A page of these is half a megabyte.
  const metadata = Object.fromEntries(Array.from({ length: 20 }, (_, key) => [`key${key}`, "m".repeat(250)]));
  await inParallel(Array.from({ length: 100 }), 8, () => reader.register({ metadata }));
  const before = await memoryOf(system, "gateway");
  const ordinary = startOrdinary(project, known.device.id);
  const attackers = Array.from({ length: 5 }, newStranger);
  const page = `GET /api/v1/devices?per_page=100 HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${reader.token}\r\n\r\n`;
  let max = 0;
  let held = 0;
  let watching = true;
  const watch = (async () => {
    while (watching) {
      max = Math.max(max, await memoryOf(system, "gateway"));
      held = Math.max(held, await gauge("herald_http_memory_bytes"));
      await delay(250);
    }
  })();
  // Four at a time: the attack is on what the gateway holds, not on who makes the pages.
  await inParallel(Array.from({ length: connections }), 4, async (_, index) => {
    const socket = (attackers[index % attackers.length] as (typeof attackers)[number]).open();
    made.push(() => socket.destroy());
    socket.write(page.repeat(pages));
    // Takes what the first read brings, and nothing more.
    await Promise.race([once(socket, "readable"), once(socket, "close")]);
  });
  await delay(5_000);
  watching = false;
  await watch;
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
  expect(failed).toEqual([]);
  // No client read another byte, and the gateway has let go of all of them by itself.
  await eventually(async () => expect(await strangersConnected()).toBe(0), { timeoutMs: 90_000 });
  await eventually(async () => expect(await gauge("herald_http_memory_bytes")).toBe(0), { timeoutMs: 90_000 });
});

test("HEAD of a stream, and clients that leave in the middle: nothing stays taken", async ({ task }) => {
  const own = await system.project("Streams");
  const one = newStranger();
  const heads = await one.flood(60, "HEAD", "/api/v1/events", bearer(own.token));
  expect(heads).toEqual({ 200: 60 });
  // Each leaves before its answer: of streams, of bodies, of questions to other services.
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
      // Half of them are gone at once, half when the gateway has begun.
      const written = new Promise((resolve) => socket.write(bytes, resolve));
      if (index % 2 === 0) await written;
      socket.destroy();
    });
  const streams: Socket[] = [];
  made.push(() => {
    for (const socket of streams) socket.destroy();
  });
  // All that a project may have are to be had.
  await eventually(async () => {
    const socket = one.open();
    socket.write(begun[0] as string);
    const [first] = await once(socket, "data");
    if (String(first).startsWith("HTTP/1.1 200 ")) streams.push(socket);
    else socket.destroy();
    expect(streams.length, String(first)).toBeGreaterThanOrEqual(20);
  });
  await eventually(async () => expect(await gauge("herald_http_memory_bytes")).toBe(0), { timeoutMs: 60_000 });
  show(task, { HEADs: 60, "requests broken off": leavers * begun.length, "streams open at the end": streams.length });
});
