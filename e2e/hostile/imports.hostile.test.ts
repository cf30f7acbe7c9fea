import { connect, type Socket } from "node:net";
import { gzipSync } from "node:zlib";
import type { Import } from "@herald/contracts";
import { eventually, expectStatus, type HttpAnswer } from "@herald/testing";
import { afterEach, expect } from "vitest";
import { seedDevices } from "../../services/registry/test/seed-devices.ts";
import { apnsToken, type Project } from "../harness/project.ts";
import { logOnFailure, type System } from "../harness/system.ts";
import { cpuFor } from "./cpu.ts";
import { show } from "./figures.ts";
import { latencyDuring, maxTicks } from "./latency.ts";
import { scale } from "./scale.ts";
import { test } from "./shared-system.ts";
import { newToken } from "./world.ts";

/** Files and readers of one project, or of eight, that take registry and the gateway from the others. */
let system: System;
let quiet: Project;
let sockets: Socket[] = [];
/** Another project's reads beside an attack, of which dispatch has no part. */
const readsDuring = (during: () => Promise<unknown>) =>
  latencyDuring(() => quiet.call("GET /devices?page=1"), during, system.services.dispatch);
/** Uploads that continue an import, in ten minutes. */
const uploadsAgain = 20;
/** Of one gateway; a project may have two of them. */
const exportsOpen = 8;
test.beforeAll(async ({ system: shared }) => {
  system = shared;
  quiet = await system.project("Quiet");
});
afterEach(() => {
  for (const socket of sockets) socket.destroy();
  sockets = [];
});
logOnFailure(() => system);

const create = (project: Project): Promise<HttpAnswer> =>
  project.call("POST /imports", { body: { import: { format: "herald" } } });
const newImport = async (project: Project): Promise<string> => expectStatus(await create(project), 201).body.data.id;
const read = async (project: Project, id: string): Promise<Import> =>
  expectStatus(await project.call(`GET /imports/${id}`), 200).body.data;

type Upload = { readonly type?: string; readonly query?: string; readonly signal?: AbortSignal };

const upload = async (
  { token }: Project,
  id: string,
  file: Buffer,
  { type = "text/csv", query = "", signal }: Upload = {},
) => {
  const response = await fetch(`${system.gateway}/api/v1/imports/${id}/content${query}`, {
    method: "PUT",
    headers: { authorization: `Bearer ${token}`, "content-type": type },
    body: new Uint8Array(file),
    ...(signal && { signal }),
  });
  return { status: response.status, text: await response.text(), retryAfter: response.headers.get("retry-after") };
};

/** Imports one device. Resolves to the time until it is processed, in ms. */
const importOne = async (project: Project): Promise<number> => {
  const begin = performance.now();
  const id = await newImport(project);
  const line = Buffer.from(JSON.stringify({ token: apnsToken(), platform: "ios" }));
  expect(await upload(project, id, line, { type: "application/x-ndjson" })).toMatchObject({ status: 200 });
  await eventually(async () => expect(await read(project, id)).toMatchObject({ status: "completed", created: 1 }), {
    timeoutMs: 180_000,
  });
  return Math.round(performance.now() - begin);
};

const rowsOf = (columns: number, lines: number): Buffer =>
  gzipSync(
    `${Array.from({ length: columns }, (_, at) => at.toString(36)).join(",")}\n${`${",".repeat(columns - 1)}\n`.repeat(lines)}`,
  );

test("a CSV of 13,100 columns is refused by the gateway", async ({ task }) => {
  const project = await system.project("Columns");
  const file = rowsOf(13_100, scale(1_280, 640));
  let statuses: number[] = [];
  let neighbour = 0;
  const reads = await readsDuring(async () => {
    const ids = await Promise.all(Array.from({ length: 4 }, () => newImport(project)));
    const answers = await Promise.all(ids.map((id) => upload(project, id, file)));
    statuses = answers.map(({ status }) => status);
    neighbour = await importOne(quiet);
  });
  show(task, {
    "gzip of each of 4 files, bytes": file.length,
    answers: statuses.join(" "),
    "another's reads meanwhile, p99 ms": reads.p99,
    "answers of another service during one of them": reads.ticks,
    "another's import of one line, ms": neighbour,
  });
  expect(statuses).toEqual([422, 422, 422, 422]);
  expect(reads.ticks).toBeLessThan(maxTicks);
});

test("many imports of one project do not hold up another's", async ({ task }) => {
  const project = await system.project("Imports");
  const file = rowsOf(200, 16 * 500 - 2);
  const ids: string[] = [];
  const started: HttpAnswer[] = [];
  for (let n = 0; n < scale(80, 25); n++) started.push(await create(project));
  for (const { status, body } of started) if (status === 201) ids.push(body.data.id);
  const end = new AbortController();
  const { signal } = end;
  const uploads = Array.from({ length: 4 }, async (_, first) => {
    for (let at = first; at < ids.length; at += 4) await upload(project, ids[at] ?? "", file, { signal });
  });
  let [neighbour, unfinished] = [0, 0];
  const reads = await readsDuring(async () => {
    // The stream has as many lines of the first imports as it takes.
    for (const id of ids.slice(0, 4))
      await eventually(async () => expect((await read(project, id)).lines_stored).toBeGreaterThan(2_000), {
        timeoutMs: 120_000,
      });
    neighbour = await importOne(quiet);
    const states = await Promise.all(ids.map((id) => read(project, id)));
    unfinished = states.filter(({ status }) => status !== "completed").length;
  });
  end.abort();
  await Promise.allSettled(uploads);
  show(task, {
    "imports of one project": started.length,
    accepted: ids.length,
    "gzip of each, bytes": file.length,
    "another's import of one line, ms": neighbour,
    "unfinished ones then": unfinished,
    "another's reads, p99 ms": reads.p99,
    "answers of another service during one of them": reads.ticks,
  });
  expect(ids.length).toBeLessThan(started.length);
  expect(started.every(({ status }) => status === 201 || status === 429)).toBe(true);
  expect(unfinished).toBeGreaterThan(ids.length / 2);
  expect(reads.ticks).toBeLessThan(maxTicks);
});

test("repeated uploads of an import are limited", async ({ task }) => {
  const project = await system.project("Again");
  const id = await newImport(project);
  const [lines, rounds] = [scale(500_000, 100_000), scale(25, 10)];
  const blank = (count: number) => gzipSync(Buffer.alloc(count, "\n"));
  // Without its end the file is not complete, so that it can be continued.
  const whole = blank(lines);
  expect(await upload(project, id, whole.subarray(0, whole.length - 9))).toMatchObject({ status: 400 });
  const stored = (await read(project, id)).lines_stored;
  expect(stored).toBeGreaterThan(lines / 2);
  const file = blank(stored - 1);
  const statuses: Record<number, number> = {};
  const cpu = await cpuFor(system, "gateway", 1, async () => {
    for (let n = 0; n < rounds; n++) {
      const answers = Array.from({ length: 4 }, () => upload(project, id, file, { query: `?after_line=${stored}` }));
      for (const { status, retryAfter } of await Promise.all(answers)) {
        statuses[status] = (statuses[status] ?? 0) + 1;
        if (status === 429) expect(Number(retryAfter)).toBeGreaterThan(0);
      }
    }
  });
  show(task, {
    "gzip of a file that is stored, bytes": file.length,
    uploads: 4 * rounds,
    answers: JSON.stringify(statuses),
    "CPU of the gateway, ms": cpu,
  });
  expect(statuses[429]).toBeGreaterThanOrEqual(4 * rounds - uploadsAgain);
});

/** Sends the head of a request and some of its body, and leaves it there. */
const hold = async (head: string, body = ""): Promise<{ socket: Socket; status: () => number | undefined }> => {
  const { hostname, port } = new URL(system.gateway);
  const socket = connect({ host: hostname, port: Number(port) }).on("error", () => {});
  sockets.push(socket);
  let text = "";
  socket.on("data", (chunk) => {
    text += chunk;
    if (body === "") socket.pause();
  });
  socket.write(`${head}\r\nHost: x\r\n\r\n${body}`);
  return { socket, status: () => (text === "" ? undefined : Number(text.slice(9, 12))) };
};

test("stalled imports of eight projects leave room for a ninth", async ({ task }) => {
  const projects = await Promise.all(Array.from({ length: 8 }, (_, n) => system.project(`Slow ${n}`)));
  const held: Awaited<ReturnType<typeof hold>>[] = [];
  for (const project of projects)
    for (let n = 0; n < 4; n++) {
      const id = await newImport(project);
      const head = [
        `PUT /api/v1/imports/${id}/content HTTP/1.1`,
        `Authorization: Bearer ${project.token}`,
        "Content-Type: application/x-ndjson",
        "Transfer-Encoding: chunked",
      ];
      held.push(await hold(head.join("\r\n"), "1\r\n{\r\n"));
    }
  const begin = performance.now();
  const dripping = setInterval(() => {
    for (const { socket, status } of held) if (status() === undefined) socket.write("1\r\n{\r\n");
  }, 20_000);
  try {
    // A refused one is answered at once.
    await eventually(async () => {
      const id = await newImport(projects[0] as Project);
      expect((await upload(projects[0] as Project, id, Buffer.from("{}"))).status).toBe(429);
    });
    const id = await newImport(quiet);
    const ninth = await upload(quiet, id, Buffer.from("{}"), { type: "application/x-ndjson" });
    const open = held.filter(({ status }) => status() === undefined).length;
    const ended = async () => {
      await eventually(() => expect(held.filter(({ status }) => status() === undefined)).toEqual([]), {
        timeoutMs: 150_000,
      });
      return Math.round((performance.now() - begin) / 1_000);
    };
    show(task, {
      "uploads of 8 projects": held.length,
      open,
      "a ninth project's upload": ninth.status,
      "the last was ended after, s": scale(1, 0) ? await ended() : "not waited for",
    });
    expect(ninth.status).toBe(200);
  } finally {
    clearInterval(dripping);
  }
});

test("unread exports leave room for another project's", async ({ task }) => {
  const slow: Project[] = [];
  for (let n = 0; n < exportsOpen / 2; n++) slow.push(await system.project(`Reads slowly ${n}`));
  const db = system.registryDatabase.client.db(system.registryDatabase.name);
  // More than the sockets' buffers hold.
  const note = "x".repeat(8_000);
  for (const project of slow) {
    const devices = Array.from({ length: 1_000 }, () => ({
      token: apnsToken(),
      platform: "ios" as const,
      metadata: { note },
    }));
    for await (const _ of seedDevices(db, project.id, devices));
  }
  const held: Awaited<ReturnType<typeof hold>>[] = [];
  for (const project of slow) {
    const { token } = await newToken(system, project, ["export"]);
    for (let n = 0; n < 2; n++) {
      const one = await hold(`GET /api/v1/exports/devices HTTP/1.1\r\nAuthorization: Bearer ${token}`);
      held.push(one);
      await eventually(() => expect(one.status()).toBeDefined());
    }
  }
  // They are still open: what is written is more than the sockets hold, and a third one of a project is refused.
  const [slowest] = slow as [Project];
  const third = await newToken(system, slowest, ["export"]);
  const refused = await fetch(`${system.gateway}/api/v1/exports/devices`, {
    headers: { authorization: `Bearer ${third.token}` },
  });
  await refused.body?.cancel();
  const { token } = await newToken(system, quiet, ["export"]);
  const another = await fetch(`${system.gateway}/api/v1/exports/devices`, {
    headers: { authorization: `Bearer ${token}` },
  });
  await another.body?.cancel();
  show(task, {
    "exports of 4 projects": held.map(({ status }) => status()).join(" "),
    "the most at a time": exportsOpen,
    "another project's": another.status,
  });
  expect([refused.status, another.status]).toEqual([429, 200]);
});
