import { request } from "node:http";
import { connect, type Socket } from "node:net";
import fc from "fast-check";
import { expect } from "vitest";
import { inParallel } from "../harness/in-parallel.ts";
import { apnsToken, type Project, type Registered } from "../harness/project.ts";
import { logOnFailure, type System } from "../harness/system.ts";
import { show } from "./figures.ts";
import { shapes, type Target, wellFormed } from "./http-shapes.ts";
import { memoryOf } from "./memory.ts";
import { startOrdinary } from "./ordinary.ts";
import { scale } from "./scale.ts";
import { test } from "./shared-system.ts";

let system: System;
let project: Project;
let known: Registered;
test.beforeAll(async ({ system: shared }) => {
  system = shared;
  project = await system.project();
  known = await project.register();
});
logOnFailure(() => system);

const targets = (): Target[] => {
  const credential = `Authorization: Bearer ${project.token}\r\n`;
  const notification = { title: "Never", targets: [known.device.id] };
  const identification = { project_id: project.id, identifier: apnsToken(), platform: "tv" };
  return [
    { method: "POST", path: "/api/v1/notifications", credential: "", body: JSON.stringify({ notification }) },
    { method: "PUT", path: "/api/v1/identification", credential: "", body: JSON.stringify(identification) },
    {
      method: "PATCH",
      path: `/api/v1/devices/${known.device.id}`,
      credential,
      body: JSON.stringify({ device: { nothing: true } }),
    },
    { method: "POST", path: "/api/v1/topics", credential, body: JSON.stringify({ topic: { name: "a b" } }) },
    { method: "DELETE", path: "/admin/v1/projects/prj_x", credential, body: "{}" },
  ];
};

type Came = { readonly statuses: readonly number[]; readonly how: "closed" | "left open" };

/** Longer than any answer takes. Slow requests have their own test. */
const patienceMs = 15_000;

const open = (): Socket => {
  const { hostname, port } = new URL(system.gateway);
  return connect({ host: hostname, port: Number(port) }).on("error", () => {});
};

/** Sends bytes, then nothing more. Resolves to the answers until the gateway closes the connection. */
async function knock(bytes: string | Buffer, socket = open(), patience = patienceMs): Promise<Came> {
  const chunks: Buffer[] = [];
  socket.on("data", (chunk) => chunks.push(chunk));
  const how = new Promise<Came["how"]>((resolve) => {
    const timer = setTimeout(resolve, patience, "left open");
    socket.once("close", () => {
      clearTimeout(timer);
      resolve("closed");
    });
  });
  if (bytes.length > 0) socket.end(bytes);
  const ended = await how;
  socket.destroy();
  const said = Buffer.concat(chunks).toString("latin1");
  return { statuses: [...said.matchAll(/HTTP\/1\.1 (\d{3}) /g)].map(([, status]) => Number(status)), how: ended };
}

const refused = ({ statuses, how }: Came): boolean =>
  how === "closed" && statuses.every((status) => status >= 400 && status < 500);

/** Memory that requests in progress may use: two bombs. Further growth would be a leak. */
const breathMb = 64;

test("malformed requests: a 4xx or a closed connection, bounded memory", async ({ task }) => {
  const named = Object.entries(shapes).flatMap(([name, shape]) =>
    targets().map((target) => ({
      name: `${name}, ${target.method} ${target.path}`,
      bytes: Buffer.from(shape(target)),
    })),
  );
  const changed = fc.sample(changedRequests(), { numRuns: scale(1_000, 200), seed: 20_260_101 });
  const ordinary = startOrdinary(project, known.device.id);
  const answered: Record<string, number> = {};
  const wrong: string[] = [];
  const round = (requests: readonly { name: string; bytes: Buffer }[]) =>
    inParallel(requests, 12, async ({ name, bytes }) => {
      const came = await knock(bytes);
      const what = came.statuses.join("+") || "closed";
      answered[what] = (answered[what] ?? 0) + 1;
      if (!refused(came)) wrong.push(`${name}: ${what}, ${came.how}`);
    });
  // The first round allocates permanent memory, such as compiled code and buffers.
  await round(named);
  const before = await memoryOf(system, "gateway");
  const rounds = scale(3, 1);
  for (let count = 0; count < rounds; count++) await round(named);
  await round(changed.map((bytes) => ({ name: bytes.toString("latin1").slice(0, 200), bytes })));
  const after = await memoryOf(system, "gateway");
  const { done, failed } = await ordinary.stop();
  expect(wrong).toEqual([]);
  expect(failed).toEqual([]);
  expect(done).toBeGreaterThan(5);
  expect(after - before).toBeLessThan(breathMb);
  show(task, {
    shapes: Object.keys(shapes).length,
    requests: named.length * (rounds + 1) + changed.length,
    answered: Object.entries(answered)
      .map(([what, count]) => `${count} × ${what}`)
      .join(", "),
    "MB before": before,
    "MB after": after,
    "ordinary sends meanwhile": done,
  });
});

/** Well-formed requests without a credential, in which some bytes are changed, removed or added. */
function changedRequests() {
  const change = fc.record({
    at: fc.double({ min: 0, max: 1, noNaN: true }),
    how: fc.constantFrom("replace", "remove", "insert"),
    bytes: fc.uint8Array({ minLength: 1, maxLength: 4 }),
  });
  return fc
    .tuple(fc.constantFrom(...targets()), fc.array(change, { minLength: 1, maxLength: 6 }))
    .map(([target, changes]) =>
      changes.reduce((request, { at, how, bytes }) => {
        const place = Math.floor(at * request.length);
        const after = how === "insert" ? place : place + bytes.length;
        const middle = how === "remove" ? Buffer.alloc(0) : bytes;
        return Buffer.concat([request.subarray(0, place), middle, request.subarray(after)]);
      }, wellFormed(target)),
    );
}

test("slow and silent connections: closed in time, while others are served", async ({ task }) => {
  const ordinary = startOrdinary(project, known.device.id);
  const each = scale(100, 20);
  const before = await memoryOf(system, "gateway");
  const head = "POST /api/v1/notifications HTTP/1.1\r\nHost: x\r\n";
  const drip = async (first: string) => {
    const socket = open();
    socket.write(first);
    const dripping = setInterval(() => socket.write("a"), 500);
    return knock("", socket, 45_000).finally(() => clearInterval(dripping));
  };
  const kinds = {
    "a head without an end": () => drip(`${head}X-A: `),
    "a body without an end": () =>
      drip(
        `${head}Authorization: Bearer ${project.token}\r\nContent-Type: application/json\r\nContent-Length: 900000\r\n\r\n{"`,
      ),
    "a chunk without an end": () =>
      drip(
        `${head}Authorization: Bearer ${project.token}\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\nFFFF\r\n{"`,
      ),
    throttle: () => knock("", open(), 45_000),
  };
  const wrong: string[] = [];
  await Promise.all(
    Object.entries(kinds).map(async ([name, begin]) => {
      const came = await Promise.all(Array.from({ length: each }, begin));
      for (const one of came) if (!refused(one)) wrong.push(`${name}: ${one.statuses.join("+")}, ${one.how}`);
    }),
  );
  const { done, failed } = await ordinary.stop();
  expect([...new Set(wrong)]).toEqual([]);
  expect(failed).toEqual([]);
  const after = await memoryOf(system, "gateway");
  expect(after - before).toBeLessThan(breathMb);
  show(task, { connections: each * 4, "MB before": before, "MB after": after, "ordinary sends meanwhile": done });
});

test("pipelined requests get their own responses, none after a malformed one", async ({ task }) => {
  const ask = (id: number) => `GET /api/v1/devices/x-${id} HTTP/1.1\r\nHost: x\r\nX-Request-Id: pipe-${id}\r\n\r\n`;
  const many = Array.from({ length: scale(1_000, 100) }, (_, id) => ask(id)).join("");
  const good = await knock(`${many}GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`);
  expect(new Set(good.statuses)).toEqual(new Set([401, 404]));
  expect(good.statuses).toHaveLength(scale(1_000, 100) + 1);
  const broken = await knock(`${ask(1)}GARBAGE\r\n\r\n${ask(2)}`);
  // The first request may be answered before the second proves invalid, or not at all. The third is never answered.
  expect(refused(broken), JSON.stringify(broken)).toBe(true);
  expect(broken.statuses.length, JSON.stringify(broken)).toBeLessThanOrEqual(2);
  show(task, { "requests on one connection": good.statuses.length });
});

/** The status of a plain request that claims to be for `host`, as a browser sends it after DNS rebinding. */
const askAs = (base: string, route: string, headers: Record<string, string>, body?: string): Promise<number> =>
  new Promise((resolve, reject) => {
    const [method = "", path = ""] = route.split(" ");
    const { hostname, port } = new URL(base);
    const type = { "content-type": "application/json" };
    request({ host: hostname, port, method, path, headers: { ...type, ...headers } }, (response) => {
      response.destroy();
      resolve(response.statusCode ?? 0);
    })
      .on("error", reject)
      .end(body);
  });

test("DNS rebinding to this machine is refused", async ({ task }) => {
  const { url: site } = system.example;
  const { url: control } = system.simulators;
  const subject = "someone-elses-user";
  const calls: [string, string, string?][] = [
    [site, "POST /session", JSON.stringify({ user: subject })],
    [site, "POST /send", JSON.stringify({ notification: { title: "Rebound", targets: ["all"] } })],
    [site, "GET /config.json"],
    [site, "GET /"],
    [control, "GET /pushes"],
    [control, "GET /events"],
    [control, "GET /"],
    [control, "GET /info"],
    [control, "PUT /script", JSON.stringify([])],
    [control, "POST /webpush/subscriptions", "{}"],
    [control, "DELETE /pushes"],
  ];
  const port = (base: string) => new URL(base).port;
  const foreign = (base: string): Record<string, string>[] => [
    ...[
      "attacker.example",
      `attacker.example:${port(base)}`,
      "127.0.0.1.attacker.example",
      "localhost.attacker.example",
    ].map((host) => ({ host })),
    { host: "192.168.0.7" },
    { host: "127.0.0.1@attacker.example" },
    // A page that does not rebind, but posts what needs no preflight.
    { host: `127.0.0.1:${port(base)}`, origin: "https://attacker.example" },
    { host: `127.0.0.1:${port(base)}`, origin: "null" },
  ];
  const done: string[] = [];
  let asked = 0;
  for (const [base, route, body] of calls)
    for (const headers of foreign(base)) {
      asked++;
      const status = await askAs(base, route, headers, body);
      if (status !== 421) done.push(`${route} with ${JSON.stringify(headers)}: ${status}`);
    }
  expect.soft(done).toEqual([]);
  for (const host of ["127.0.0.1", "localhost", "[::1]", "LOCALHOST"])
    for (const [base, route] of [
      [site, "GET /config.json"],
      [control, "GET /pushes"],
    ] as const)
      expect(
        await askAs(base, route, { host: `${host}:${port(base)}`, origin: `http://${host.toLowerCase()}:1` }),
      ).toBe(200);
  // An address that no URL has, or that cannot be decoded, ends only its own request, not `npm start`.
  for (const route of ["GET //", "GET /%ff"]) expect(await askAs(site, route, { host: "localhost" })).toBeLessThan(500);
  expect(await askAs(site, "GET /config.json", { host: "localhost" })).toBe(200);
  show(task, { "requests of a foreign site": asked, "of them obeyed": done.length });
});
