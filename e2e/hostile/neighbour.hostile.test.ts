import { expectStatus } from "@herald/testing";
import { expect } from "vitest";
import { percentile } from "../../bench/src/table.ts";
import { inParallel } from "../harness/in-parallel.ts";
import type { Project } from "../harness/project.ts";
import { seed } from "../harness/seed.ts";
import { payloadOf } from "../harness/simulators.ts";
import { logOnFailure, type System } from "../harness/system.ts";
import { show } from "./figures.ts";
import { memoryOf } from "./memory.ts";
import { scale } from "./scale.ts";
import { test } from "./shared-system.ts";

/** Waiting small sends of one project, and their effect on another project. */
let system: System;
let quiet: Project;
let noisy: Project;
const sends = scale(20_000, 5_000);
const perRequest = 500;
const everyMs = 50;
test.beforeAll(async ({ system: shared }) => {
  system = shared;
  [quiet, noisy] = [await system.project("Quiet"), await system.project("Noisy")];
});
logOnFailure(() => system);

test(`${sends} sends of one project that wait hold up no other's`, async ({ task }) => {
  const targets = await seed(system, noisy, 1_000);
  const [device] = await seed(system, quiet, 1);
  const arrived = system.simulators.follow();
  const before = await memoryOf(system, "dispatch");
  const requests = Array.from({ length: sends / perRequest }, (_, request) =>
    Array.from({ length: perRequest }, (_, n) => ({
      title: "Noise",
      targets: [`device:${targets[(request * perRequest + n) % targets.length]?.id}`],
    })),
  );
  const accepted = inParallel(requests, 8, async (notifications) =>
    expectStatus(await noisy.call("POST /notifications/batch", { body: { notifications } }), 202),
  );
  const answers = (await accepted).flatMap(({ body }) => body.data);
  const waiting = answers.filter(({ id }) => id !== undefined).length;
  const sentAt = new Map<string, number>();
  const arrivals: { sent: number; at: number }[] = [];
  const noiseAt: number[] = [];
  let max = before;
  const take = async () => {
    for (const push of await arrived()) {
      const { project_id, notification_id } = payloadOf(push);
      const sent = sentAt.get(notification_id);
      const at = Date.parse(push.at);
      if (sent !== undefined) arrivals.push({ sent, at });
      else if (project_id === noisy.id) noiseAt.push(at);
    }
    max = Math.max(max, await memoryOf(system, "dispatch"));
  };
  const from = performance.now();
  const looks = sends / 100;
  for (let look = 0; look < looks * 100 && (noiseAt.length < waiting || arrivals.length < sentAt.size); look++) {
    const at = Date.now();
    if (noiseAt.length < waiting) {
      const { id } = await quiet.send({ title: "Code", targets: [`device:${device?.id}`] });
      sentAt.set(id, at);
    }
    if (look % 10 === 9 || noiseAt.length === waiting) await take();
    await new Promise((resolve) => setTimeout(resolve, Math.max(1, everyMs - (Date.now() - at))));
  }
  const times = arrivals.map(({ sent, at }) => at - sent);
  const overtaken = arrivals.map(({ sent, at }) => noiseAt.filter((one) => one > sent && one < at).length);
  show(task, {
    "accepted of the noisy project": waiting,
    "its pushes a second": Math.round((1_000 * noiseAt.length) / (performance.now() - from)),
    "another's sends meanwhile": sentAt.size,
    "from its POST to the push, p50 ms": percentile(times, 50),
    "p99 ms": percentile(times, 99),
    "noisy pushes in between, p50": percentile(overtaken, 50),
    "at most": Math.max(...overtaken),
    "dispatch's memory before, MB": before,
    "at max, MB": max,
  });
  expect(waiting).toBe(sends);
  expect(noiseAt).toHaveLength(waiting);
  expect(arrivals).toHaveLength(sentAt.size);
  // Behind all that waits, a send would come after thousands. Counted, because a busy machine slows both projects.
  expect(percentile(overtaken, 50)).toBeLessThan(sends / 8);
  expect(Math.max(...overtaken)).toBeLessThan(sends / 3);
  // Memory holds 16 MiB of groups, which take several times as much when parsed. More waiting sends need no more memory.
  expect(max - before).toBeLessThan(256);
});
