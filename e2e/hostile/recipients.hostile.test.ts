import { setTimeout as delay } from "node:timers/promises";
import { gzipSync } from "node:zlib";
import { type LineError, newDeviceId, type Recipients } from "@herald/contracts";
import { eventually, expectStatus } from "@herald/testing";
import { expect } from "vitest";
import { percentile } from "../../bench/src/table.ts";
import { inParallel } from "../harness/in-parallel.ts";
import type { Content, Project } from "../harness/project.ts";
import { seed } from "../harness/seed.ts";
import { payloadOf } from "../harness/simulators.ts";
import { logOnFailure, type System } from "../harness/system.ts";
import { cpuFor } from "./cpu.ts";
import { show } from "./figures.ts";
import { latencyDuring, maxTicks, startTicks } from "./latency.ts";
import { memoryOf, peakMemory } from "./memory.ts";
import { scale } from "./scale.ts";
import { test } from "./shared-system.ts";
import { newToken } from "./world.ts";

/** Files of recipients with strange lines, bombs, and uploads that never begin. */
let system: System;
let quiet: Project;
test.beforeAll(async ({ system: shared }) => {
  system = shared;
  quiet = await system.project("Quiet");
});
logOnFailure(() => system);

const open = async (project: Project, more: Record<string, unknown> = {}): Promise<string> => {
  const content = { title: "{{ n }}", variables: { n: "" }, recipients: { upload: "user" }, ...more };
  return (await project.send(content as unknown as Content)).id;
};
const upload = (
  project: Project,
  id: string,
  body: ReadableStream | Uint8Array,
  signal?: AbortSignal,
  query = "",
): Promise<Response> =>
  fetch(`${system.gateway}/api/v1/notifications/${id}/recipients${query}`, {
    ...{ method: "PUT", duplex: "half", body, signal: signal ?? null },
    headers: { authorization: `Bearer ${project.token}`, "content-type": "application/x-ndjson" },
  } as RequestInit);
const read = async (project: Project, id: string): Promise<Recipients> =>
  expectStatus(await project.call(`GET /notifications/${id}/recipients`), 200).body.data;

test("stalled uploads do not hold up another's broadcast", async ({ task }) => {
  const projects = await Promise.all(Array.from({ length: scale(60, 8) }, (_, n) => system.project(`Idle ${n}`)));
  const ids: string[] = [];
  for (const project of projects) for (let n = 0; n < 4; n++) ids.push(await open(project));
  const devices = await seed(system, quiet, 2_000, { topics: ["all-of-us"] });
  const began = performance.now();
  const { id } = await quiet.send({ title: "To all", targets: ["topic:all-of-us"] });
  const { counts } = await quiet.final(id, 120_000);
  show(task, { "uploads that wait": ids.length, "another's broadcast, ms": Math.round(performance.now() - began) });
  expect(counts.accepted).toBe(devices.length);
});

/** Lines that an importer would choke on, and the field of their problem. */
const lines: readonly (readonly [line: string, field: string])[] = [
  ["", ""],
  ["null", ""],
  ["[]", ""],
  ["{}", "target"],
  ['{"target":7}', "target"],
  ['{"target":"topic:all"}', "target"],
  ['{"target":"all"}', "target"],
  ['{"target":"condition:!exists(app)"}', "target"],
  ['{"target":"device:dev_06bq4ghm31tz5d2ns8y7k9w0ac"}', "target"],
  [`{"target":"user:${"u".repeat(5_000)}"}`, "target"],
  ['{"target":"user:a","targets":["all"]}', "targets"],
  ['{"target":"user:a","variables":{"__proto__":{"n":"x"}}}', ""],
  ['{"target":"user:a","variables":{"__proto__":"x"}}', ""],
  ['{"target":"user:a","variables":{"constructor":"x"}}', "variables"],
  ['{"target":"user:a","variables":{"user":"x"}}', "variables"],
  ['{"target":"user:a","variables":{"n":{"n":"x"}}}', "variables"],
  ['{"target":"user:a","variables":{"n":null}}', "variables"],
  [`{"target":"user:a","variables":{"n":"${"x".repeat(5_000)}"}}`, "variables"],
  [
    `{"target":"user:a","variables":${JSON.stringify(Object.fromEntries(Array.from({ length: 51 }, (_, at) => [`v${at}`, 1])))}}`,
    "variables",
  ],
  [`{"target":"user:a","variables":${'{"n":'.repeat(5_000)}1${"}".repeat(5_000)}}`, ""],
  [`${"[".repeat(50_000)}`, ""],
  [`{"target":"user:a","variables":{"n":"${"x".repeat(200_000)}"}}`, ""],
];

test("each wrong line is refused with its number and field", async ({ task }) => {
  const project = await system.project("Strange lines");
  const { device: known } = await project.register({ user_id: "known" } as Parameters<typeof project.register>[0]);
  const id = await open(project);
  const invalid = Buffer.concat([Buffer.from('{"target":"user:'), Buffer.from([0xff, 0xfe]), Buffer.from('"}\n')]);
  const last = '{"target":"user:known","variables":{"n":"{{ user.id }}{% raw %}"}}\n';
  const file = Buffer.concat([Buffer.from(lines.map(([line]) => `${line}\n`).join("")), invalid, Buffer.from(last)]);
  const answer = await upload(project, id, new Uint8Array(gzipSync(file)));
  expect(answer.status).toBe(200);
  const { body } = await project.call(`GET /notifications/${id}/recipients/errors?per_page=100`);
  const found = new Map((body.data as LineError[]).map(({ line, field }) => [line, field.split(".")[0]]));
  const wrong = lines.flatMap(([line, field], at) =>
    line === "" || found.get(at + 1) === field ? [] : [`${line.slice(0, 60)}: ${found.get(at + 1)}`],
  );
  expect(wrong).toEqual([]);
  expect(await read(project, id)).toMatchObject({ recipients: 1, refused: lines.length, complete: true });
  expect((await project.final(id)).counts).toMatchObject({ devices: 1, accepted: 1 });
  // A value is text, whatever it looks like.
  const [push] = await system.simulators.pushes({ token: known.token });
  expect(push && payloadOf(push).aps?.alert).toEqual({ title: "{{ user.id }}{% raw %}" });
  expect({}).not.toHaveProperty("n");
  show(task, { lines: lines.length + 2 });
});

test("gzip bombs and trickling uploads take nothing from others", async ({ task }) => {
  const project = await system.project("Bombs");
  const id = await open(project);
  const bomb = gzipSync(Buffer.alloc(scale(256, 80) * 1_048_576));
  const end = new AbortController();
  const trickle = new ReadableStream({
    async pull(controller) {
      await delay(50);
      controller.enqueue(Buffer.from(" "));
    },
  });
  const slow = upload(project, await open(project), trickle, end.signal).catch(() => undefined);
  let status = 0;
  const bombed = async () => {
    status = (await upload(project, id, new Uint8Array(bomb))).status;
  };
  // Dispatch has no part in uploads.
  const reads = await latencyDuring(() => quiet.call("GET /devices?page=1"), bombed, system.services.dispatch);
  end.abort();
  await slow;
  show(task, {
    "bytes of gzip": bomb.length,
    "another's reads meanwhile, p99 ms": reads.p99,
    "answers of another service during one of them": reads.ticks,
  });
  expect([status, (await read(project, id)).lines_stored]).toEqual([413, 0]);
  expect(reads.ticks).toBeLessThan(maxTicks);
});

type Endless = { readonly perPiece: number; readonly pauseMs: number; readonly signal: AbortSignal };

/** Lines of known devices, then of ever new ones: `perPiece` at a time, with a pause before each piece, until the signal. */
const endless = (known: readonly string[], { perPiece, pauseMs, signal }: Endless): ReadableStream => {
  let next = 0;
  const line = () => {
    const n = next++;
    return `${JSON.stringify({ target: `device:${known[n] ?? newDeviceId(new Date())}`, variables: { n: `${n}` } })}\n`;
  };
  return new ReadableStream({
    async pull(controller) {
      await delay(pauseMs);
      // `fetch` reads a stream to its end, even after it was aborted.
      if (signal.aborted) return controller.close();
      controller.enqueue(Buffer.from(Array.from({ length: perPiece }, line).join("")));
    },
  });
};

test("endless uploads hold up no other project's single sends", async ({ task }) => {
  const project = await system.project("Endless");
  const known = (await seed(system, project, 2_000)).map(({ id }) => id);
  const [device] = await seed(system, quiet, 1);
  const arrived = system.simulators.follow();
  let noise = 0;
  /** Sends one after another. Resolves to the times from each POST to its push, in ms, and how many answers of analytics came meanwhile. */
  const sendAll = async (count: number) => {
    const sentAt = new Map<string, number>();
    const arrivals: { readonly sent: number; readonly at: number }[] = [];
    const ticks = startTicks(system.services.analytics);
    try {
      for (; sentAt.size < count; await delay(50)) {
        const at = Date.now();
        sentAt.set((await quiet.send({ title: "Code", targets: [`device:${device?.id}`] })).id, at);
      }
      await eventually(async () => {
        for (const push of await arrived()) {
          const sent = sentAt.get(payloadOf(push).notification_id);
          if (sent === undefined) noise++;
          else arrivals.push({ sent, at: Date.parse(push.at) });
        }
        expect(arrivals).toHaveLength(sentAt.size);
      });
    } finally {
      await ticks.stop();
    }
    return {
      times: arrivals.map(({ sent, at }) => at - sent),
      ticks: arrivals.map(({ sent, at }) => ticks.between(sent, at)),
    };
  };
  const recipients = { upload: "device" };
  const ids: string[] = [];
  for (let n = 0; n < 4; n++) ids.push(await open(project, { recipients }));
  const end = new AbortController();
  const { signal } = end;
  const fast = { perPiece: 500, pauseMs: 0, signal };
  const paces = [fast, fast, { perPiece: 1, pauseMs: 20, signal }, fast];
  const uploads = paces.map((pace, at) =>
    upload(project, `${ids[at]}`, endless(known, pace), signal, at === 3 ? "?dry_run=true" : "").catch(() => undefined),
  );
  const { times, ticks } = await sendAll(scale(1_000, 80));
  // The first lines of an upload may come later than the sends on a busy machine.
  const stored = await eventually(async () => {
    const all = await Promise.all(ids.map(async (id) => (await read(project, id)).lines_stored));
    // The third stores nothing until its first chunk ends, and the fourth never does.
    expect(all.map((lines, at) => at === 2 || lines > 0)).toEqual([true, true, true, false]);
    return all;
  });
  end.abort();
  await Promise.all(uploads);
  show(task, {
    "lines stored of 4 uploads": stored.join(" "),
    "pushes to their users": noise,
    "another's sends meanwhile": times.length,
    "from its POST to the push, p50 ms": percentile(times, 50),
    "p99 ms": percentile(times, 99),
    "answers of another service meanwhile, p50": percentile(ticks, 50),
  });
  // Behind lines that never end, each send would wait for many seconds.
  expect(percentile(ticks, 50)).toBeLessThan(maxTicks);
});

type Lingering = { readonly signal: AbortSignal; readonly onSent: () => void };

/** A file of ever new targets, then of the same one again and again, 2 KB in a second, until the signal. */
const thatLingers = (targets: number, { signal, onSent }: Lingering): ReadableStream => {
  const piece = 20_000;
  let next = 0;
  return new ReadableStream({
    async pull(controller) {
      if (signal.aborted) return controller.close();
      if (next < targets) {
        const lines = Array.from(
          { length: Math.min(piece, targets - next) },
          (_, at) => `user:${(next + at).toString(36)}`,
        );
        controller.enqueue(Buffer.from(`${next === 0 ? "target\n" : ""}${lines.join("\n")}\n`));
        next += piece;
        return;
      }
      onSent();
      await delay(1_000);
      controller.enqueue(Buffer.from("user:0\n".repeat(300)));
    },
  });
};
const uploadCsv = (
  project: Project,
  id: string,
  body: ReadableStream | Uint8Array,
  query = "",
  token = project.token,
) =>
  fetch(`${system.gateway}/api/v1/notifications/${id}/recipients${query}`, {
    ...{ method: "PUT", duplex: "half", body },
    headers: { authorization: `Bearer ${token}`, "content-type": "text/csv" },
  } as RequestInit);
const csvOf = (targets: number): Uint8Array =>
  Buffer.from(`target\n${Array.from({ length: targets }, (_, at) => `user:${at}\n`).join("")}`);

test("stalled dry runs of one project leave others their room", async ({ task }) => {
  const project = await system.project("Lingers");
  const end = new AbortController();
  const lines = scale(1_600_000, 50_000);
  const lingering = [0, 1].map(async () => {
    const { promise: sent, resolve: onSent } = Promise.withResolvers<void>();
    const file = thatLingers(lines, { signal: end.signal, onSent });
    const answer = uploadCsv(project, await open(project), file, "?dry_run=true").then(
      ({ status }) => status,
      () => 0,
    );
    await Promise.race([sent, answer]);
    return { answer };
  });
  const mine = await open(quiet);
  const uploads = await Promise.all(lingering);
  const { status } = await uploadCsv(quiet, mine, csvOf(scale(1_000_000, 20_000)), "?dry_run=true");
  const begins = await Promise.all(
    Array.from({ length: 3 }, async () => (await uploadCsv(quiet, mine, csvOf(1), "?dry_run=true")).status),
  );
  end.abort();
  show(task, {
    "lines of each of 2 dry runs": lines,
    "answers to them": (await Promise.all(uploads.map(({ answer }) => answer))).join(" "),
    "another's file": status,
    "another's smallest files": begins.join(" "),
  });
  expect([status, ...begins]).toEqual(Array.from({ length: 4 }, () => 200));
});

/** A file that goes on after its lines, one blank in 50 ms, and breaks at the signal. */
const thatGoesOn = (lines: Uint8Array, { signal, onSent }: Lingering): ReadableStream => {
  let isBegun = false;
  return new ReadableStream({
    async pull(controller) {
      if (isBegun) {
        onSent();
        await delay(50);
      }
      if (signal.aborted) return controller.error(new Error("the file breaks"));
      controller.enqueue(isBegun ? Buffer.from(" ") : lines);
      isBegun = true;
    },
  });
};

test("dry runs of files count, and repeated uploads are limited", async ({ task }) => {
  const project = await system.project("Counts");
  const id = await open(project);
  const dry: number[] = [];
  await inParallel(Array.from({ length: 70 }), 4, async () => {
    dry.push((await uploadCsv(project, id, csvOf(1), "?dry_run=true")).status);
  });
  const end = new AbortController();
  const file = thatGoesOn(csvOf(2_500), { signal: end.signal, onSent: () => {} });
  const first = uploadCsv(project, id, file).catch(() => undefined);
  const stored = await eventually(async () => {
    const { lines_stored: lines } = await read(project, id);
    expect(lines).toBeGreaterThan(1_000);
    return lines;
  });
  end.abort();
  await first;
  const again: number[] = [];
  await inParallel(Array.from({ length: 30 }), 4, async () => {
    again.push((await uploadCsv(project, id, csvOf(1), `?after_line=${stored}`)).status);
  });
  const refused = (statuses: readonly number[]) => statuses.filter((status) => status === 429).length;
  show(task, {
    "dry runs of a file": dry.length,
    "of them refused": refused(dry),
    "uploads of a file whose lines are stored": again.length,
    "of these refused": refused(again),
  });
  expect(refused(dry)).toBeGreaterThanOrEqual(10);
  expect(refused(again)).toBeGreaterThanOrEqual(10);
});

test("a stalled upload ends with its notification or token", async ({ task }) => {
  const project = await system.project("Cancels");
  const { token, id: tokenId } = await newToken(system, project, ["send"]);
  const [cancelled, dry, revoked] = [await open(project), await open(project), await open(project)];
  const end = new AbortController();
  const answers: Record<string, number> = {};
  const begin = async (what: string, id: string, query = "", by = project.token) => {
    const { promise: sent, resolve: onSent } = Promise.withResolvers<void>();
    const answer = uploadCsv(project, id, thatGoesOn(csvOf(10), { signal: end.signal, onSent }), query, by).then(
      ({ status }) => {
        if (!end.signal.aborted) answers[what] = status;
      },
      () => undefined,
    );
    await sent;
    return { answer };
  };
  const uploads = await Promise.all([
    begin("cancelled", cancelled),
    begin("cancelled, a dry run", dry, "?dry_run=true"),
    begin("token revoked", revoked, "", token),
  ]);
  for (const id of [cancelled, dry]) expectStatus(await project.call(`DELETE /notifications/${id}`), 200);
  expectStatus(await system.admin(`DELETE /projects/${project.id}/tokens/${tokenId}`), 204);
  const wanted = { cancelled: 409, "cancelled, a dry run": 409, "token revoked": 401 };
  try {
    await eventually(() => expect(answers).toEqual(wanted), { timeoutMs: 15_000 });
  } finally {
    show(task, { uploads: uploads.length, ended: Object.keys(answers).length });
    end.abort();
    await Promise.all(uploads.map(({ answer }) => answer));
  }
});

/** A notification that ended with a list of `pages` chunks of 2,000 lines, each refused or without a device, as dispatch stores them. */
const storeList = async (project: Project, pages: number): Promise<{ path: string; lines: number }> => {
  const id = await open(project);
  await eventually(async () => expectStatus(await project.call(`DELETE /notifications/${id}`), 200));
  await project.final(id);
  const [perPage, refused] = [2_000, 10];
  const db = system.registryDatabase.client.db(`${system.registryDatabase.prefix}_dispatch`);
  const chunks = Array.from({ length: pages }, (_, page) => {
    const [first, done] = [page * perPage + 1, page + 1];
    const lines = perPage - refused;
    return {
      ...{ _id: `${id}/${String(page).padStart(6, "0")}`, projectId: project.id, notificationId: id },
      ...{ lastLine: done * perPage, recipients: done * lines, refused: done * refused, duplicates: 0 },
      errors: Array.from({ length: refused }, (_, n) => {
        return { line: first + n, field: "target", reason: "must be a user", code: "invalid-value" };
      }),
      errorsBefore: done * refused,
      unmatched: Array.from({ length: lines }, (_, n) => first + refused + n),
      unmatchedBefore: done * lines,
      faulty: true,
      ...(done === pages && { last: true }),
      at: new Date(),
    };
  });
  const collection = db.collection<(typeof chunks)[number]>("recipients");
  // Its empty end.
  await collection.deleteMany({ notificationId: id });
  for (let from = 0; from < pages; from += 100) await collection.insertMany(chunks.slice(from, from + 100));
  await db.collection<{ _id: string }>("notifications").updateOne({ _id: id }, { $set: { pagesExpanded: pages } });
  return { path: `/notifications/${id}/recipients`, lines: pages * perPage };
};

test("progress and errors of the longest list cost what they show", async ({ task }) => {
  const project = await system.project("Long list");
  const [long, short] = [await storeList(project, 1_000), await storeList(project, 5)];
  const { path, lines } = long;
  const before = await memoryOf(system, "dispatch");
  const statuses: number[] = [];
  const ask = async (what: string) => {
    const answer = await project.call(`GET ${what}`);
    statuses.push(answer.status);
    return answer;
  };
  const reads = 20;
  /** CPU of dispatch in ms for the progress of a list, a page of its errors, and one in their middle. */
  const costOf = async (list: typeof long) => {
    const costs: number[] = [];
    for (const query of ["", "/errors?per_page=100", `/errors?page=${(list.lines * 3) / 400}&per_page=100`])
      costs.push(
        await cpuFor(system, "dispatch", reads, async () => {
          for (let n = 0; n < reads; n++) await ask(`${list.path}${query}`);
        }),
      );
    return costs;
  };
  const idle = () => cpuFor(system, "dispatch", 1, () => delay(1_000));
  const idleBefore = await idle();
  // The first reads compile what they run.
  await costOf(short);
  const [ofLong, ofShort] = [await costOf(long), await costOf(short)];

  // Readers that leave before they are answered.
  const leave = new AbortController();
  const { signal } = leave;
  const headers = { authorization: `Bearer ${project.token}` };
  const readers = async () => {
    const gone = Array.from({ length: 48 }, async (_, n) => {
      const query = ["", "/errors?per_page=100&after=", "/errors?page=10000&per_page=100"][n % 3];
      for (let turn = 0; turn < 20 && !signal.aborted; turn++)
        await fetch(`${system.gateway}/api/v1${path}${query}`, { headers, signal })
          .then((answer) => answer.arrayBuffer())
          .catch(() => undefined);
    });
    await delay(scale(10_000, 4_000));
    leave.abort();
    await Promise.all(gone);
  };
  let latency = { p99: 0, ticks: 0, answered: 0 };
  const during = async () => {
    latency = await latencyDuring(() => quiet.call("GET /notifications"), readers, system.services.analytics);
  };
  const peak = await peakMemory(system, "dispatch", during());
  // What they asked for is done for nobody, and ends.
  const after = await eventually(
    async () => {
      const used = await idle();
      expect(used).toBeLessThan(2 * idleBefore + 50);
      return used;
    },
    { timeoutMs: 60_000 },
  );
  show(task, {
    lines,
    "ms of dispatch's CPU for progress, a page of errors, one in the middle": ofLong.join(", "),
    "for a list of 10,000 lines": ofShort.join(", "),
    answered: statuses.filter((status) => status === 200).length,
    "MB of dispatch, with 48 readers": `${before} → ${peak}`,
    "another's reads meanwhile, p99 ms": latency.p99,
    "ms of CPU a second, after they have gone": after,
  });
  expect(statuses.filter((status) => status !== 200)).toEqual([]);
  for (const [at, cost] of ofLong.entries()) expect(cost).toBeLessThan(4 * (ofShort[at] ?? 0) + 20);
  expect(peak - before).toBeLessThan(150);
  expect(latency.ticks).toBeLessThan(maxTicks);
  const progress = expectStatus(await ask(path), 200).body.data;
  expect(progress).toMatchObject({ lines_stored: lines, processed: 1_990_000, unmatched: 1_990_000 });
  const middle = await ask(`${path}/errors?page=10001&per_page=100`);
  expect(middle.body.pagination).toMatchObject({ count: lines, from: 1_000_001, to: 1_000_100 });
  expect(middle.body.data.map(({ line }: LineError) => line)).toEqual(
    Array.from({ length: 100 }, (_, n) => 1_000_001 + n),
  );
});
