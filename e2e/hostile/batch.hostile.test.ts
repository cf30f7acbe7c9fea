import { randomUUID } from "node:crypto";
import { expectStatus, type HttpAnswer } from "@herald/testing";
import { expect } from "vitest";
import { cpuSeconds } from "../../bench/src/processes.ts";
import { inParallel } from "../harness/in-parallel.ts";
import type { Project } from "../harness/project.ts";
import { logOnFailure, type System } from "../harness/system.ts";
import { show } from "./figures.ts";
import { memoryOf } from "./memory.ts";
import { scale } from "./scale.ts";
import { test } from "./shared-system.ts";

let system: System;
let project: Project;
let other: Project;
test.beforeAll(async ({ system: shared }) => {
  system = shared;
  project = await system.project("Batches");
  other = await system.project("Beside");
});
logOnFailure(() => system);

const cpuMs = (): number => Math.round(1_000 * cpuSeconds(system.services.gateway.pid()));

const post = (notifications: unknown, key?: string): Promise<HttpAnswer> =>
  project.call("POST /notifications/batch", {
    body: { notifications },
    ...(key === undefined ? {} : { headers: { "idempotency-key": key } }),
  });

const times = <Value>(count: number, make: (index: number) => Value): Value[] =>
  Array.from({ length: count }, (_, index) => make(index));

const typos = (count: number) => Object.fromEntries(times(count, (index) => [`titel${index}`, index]));
const clauses = (count: number) => `${"!('x'in topics)&&".repeat(count - 1)}platform=='x'`;

/** Bodies that cost more than their size suggests, as large as the limits allow. */
const bodies: readonly [string, unknown, status: number[]][] = [
  ["500 without a field", times(500, () => ({})), [422]],
  ["19,000 unknown fields", times(475, () => typos(38)), [422]],
  ["500 conditions of 200 clauses", times(500, () => ({ title: "x", targets: [`condition:${clauses(200)}`] })), [202]],
  ["500 conditions of 400 clauses", times(500, () => ({ title: "x", targets: [`condition:${clauses(400)}`] })), [422]],
  [
    "60 contents of 64 KiB in 100 languages",
    times(60, () => ({
      targets: ["token:x"],
      title: "x",
      localizations: Object.fromEntries(times(100, (index) => [`en-${index}`, { body: "ä".repeat(290) }])),
    })),
    [202, 422],
  ],
  [
    "30 contents that are too large",
    times(30, () => ({ targets: ["token:x"], web: { x: "y".repeat(130_000) } })),
    [422],
  ],
  ["500 numbers", times(500, (index) => index), [422]],
  [
    "500 that are late",
    times(500, () => ({ title: "x", targets: ["token:x"], send_at: "2999-01-01T00:00:00Z" })),
    [422],
  ],
];

/** How much more a body may cost than the 500 ordinary single sends that it could have been, of which a hundred are measured. */
const maxRatio = 5;
const singly = 100;
const maxGrowthMb = 256;

test("a body of 4 MiB costs no more than as many requests", async ({ task }) => {
  const { device } = await other.register();
  const before = await memoryOf(system, "gateway");
  const costs: Record<string, number> = {};
  const singlesFrom = cpuMs();
  await inParallel(Array.from({ length: singly }), 8, async () => {
    const answer = await other.call("POST /notifications", {
      body: { notification: { title: "x", targets: ["token:x"] } },
    });
    expectStatus(answer, 202);
  });
  const singles = (cpuMs() - singlesFrom) * (500 / singly);
  const wrong: string[] = [];
  let beside = 0;
  for (const [what, notifications, statuses] of bodies) {
    const from = cpuMs();
    const answered = post(notifications).then((answer) => ({ answer, done: true as const }));
    let ended: { answer: HttpAnswer; done: true } | undefined;
    while (ended === undefined) {
      if ((await other.call(`GET /devices/${device.id}`)).status === 200) beside++;
      else wrong.push(`beside ${what}`);
      ended = await Promise.race([answered, Promise.resolve(undefined)]);
    }
    costs[what] = cpuMs() - from;
    const { status, body } = ended.answer;
    if (!statuses.includes(status)) wrong.push(`${what}: ${status} ${JSON.stringify(body).slice(0, 200)}`);
    const problems = status === 422 ? body.errors.filter((one: string) => !/more problems like these/.test(one)) : [];
    if (problems.length > 100) wrong.push(`${what}: ${problems.length} problems are described`);
  }
  const grown = (await memoryOf(system, "gateway")) - before;
  const dearest = Object.entries(costs).toSorted(([, one], [, two]) => two - one)[0];
  show(task, {
    bodies: bodies.length,
    "dearest body": dearest?.[0] ?? "",
    "CPU ms of the gateway for it": dearest?.[1] ?? 0,
    "CPU ms for 500 single sends": singles,
    "requests of others answered": beside,
    "MB more": grown,
  });
  expect(wrong).toEqual([]);
  expect(Math.max(...Object.values(costs))).toBeLessThan(maxRatio * singles);
  expect(grown).toBeLessThan(maxGrowthMb);
});

test("a repeated key costs only its sender", async ({ task }) => {
  const rounds = scale(400, 40);
  const own = times(20, (index) => ({ title: `Own ${index}`, targets: ["token:own"] }));
  const key = randomUUID();
  const first = await post(own, key);
  let repeats = 0;
  let ended = false;
  const wrong: number[] = [];
  const repeating = Promise.all(
    times(4, async () => {
      while (!ended) {
        const again = await post(own, key);
        repeats++;
        // Rate limits apply to the repeats, too.
        if (again.status !== 429) expect(again.body).toEqual(first.body);
      }
    }),
  );
  const ids = new Set<string>();
  for (let round = 0; round < rounds; round++) {
    const answers = await Promise.all(
      times(8, () =>
        other.call("POST /notifications", {
          body: { notification: { title: "Beside", targets: ["token:beside"] } },
          headers: { "idempotency-key": randomUUID() },
        }),
      ),
    );
    for (const { status, body } of answers) {
      if (status === 202) ids.add(body.data.id);
      else wrong.push(status);
    }
  }
  ended = true;
  await repeating;
  show(task, { repeats, "sends of others": ids.size, refused: wrong.length });
  expect(wrong).toEqual([]);
  expect(ids.size).toBe(rounds * 8);
  expect((await project.notifications()).filter(({ title }) => title?.startsWith("Own"))).toHaveLength(own.length);
});
