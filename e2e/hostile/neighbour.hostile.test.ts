import { expectStatus } from "@herald/testing";
import { afterAll, beforeAll, expect, test } from "vitest";
import { percentile } from "../../bench/src/table.ts";
import { inParallel } from "../harness/in-parallel.ts";
import type { Project } from "../harness/project.ts";
import { seed } from "../harness/seed.ts";
import { payloadOf } from "../harness/simulators.ts";
import { logOnFailure, type System, startSystem } from "../harness/system.ts";
import { show } from "./figures.ts";
import { memoryOf } from "./memory.ts";
import { scale } from "./scale.ts";

/** Waiting small sends of one project, and their effect on another project. */
let system: System;
let quiet: Project;
let noisy: Project;
const sends = scale(20_000, 5_000);
const perRequest = 500;
const everyMs = 50;
beforeAll(async () => {
  system = await startSystem();
  [quiet, noisy] = [await system.project("Quiet"), await system.project("Noisy")];
});
afterAll(() => system?.stop());
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
  const times: number[] = [];
  let [noise, max] = [0, before];
  const take = async () => {
    for (const push of await arrived()) {
      const since = sentAt.get(payloadOf(push).notification_id);
      if (since === undefined) noise++;
      else times.push(Date.parse(push.at) - since);
    }
    max = Math.max(max, await memoryOf(system, "dispatch"));
  };
  const from = performance.now();
  const looks = sends / 100;
  for (let look = 0; look < looks * 100 && (noise < waiting || times.length < sentAt.size); look++) {
    const at = Date.now();
    if (noise < waiting) {
      const { id } = await quiet.send({ title: "Code", targets: [`device:${device?.id}`] });
      sentAt.set(id, at);
    }
    if (look % 10 === 9 || noise === waiting) await take();
    await new Promise((resolve) => setTimeout(resolve, Math.max(1, everyMs - (Date.now() - at))));
  }
  show(task, {
    "accepted of the noisy project": waiting,
    "its pushes a second": Math.round((1_000 * noise) / (performance.now() - from)),
    "another's sends meanwhile": sentAt.size,
    "from its POST to the push, p50 ms": percentile(times, 50),
    "p99 ms": percentile(times, 99),
    "dispatch's memory before, MB": before,
    "at max, MB": max,
  });
  expect(waiting).toBe(sends);
  expect(noise).toBe(waiting);
  expect(times).toHaveLength(sentAt.size);
  expect(percentile(times, 99)).toBeLessThan(500);
  // Memory holds 16 MiB of groups, which take several times as much when parsed. More waiting sends need no more memory.
  expect(max).toBeLessThan(384);
});
