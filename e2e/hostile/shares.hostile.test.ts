import { readFile } from "node:fs/promises";
import { type Answered, expectStatus } from "@herald/testing";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Project } from "../harness/project.ts";
import { logOnFailure, type System, startSystem } from "../harness/system.ts";
import { show } from "./figures.ts";
import { scale } from "./scale.ts";

/** A noisy project at work, and what another one notices of it. */
let system: System;
let noisy: Project;
let quiet: Project;
const devices = scale(20_000, 4_000);
beforeAll(async () => {
  system = await startSystem({ env: { HERALD_GATEWAY_QUOTA_DRY_RUNS: "1000000" } });
  [noisy, quiet] = [await system.project("Noisy"), await system.project("Quiet")];
  await seed(noisy, devices);
  await quiet.register();
});
afterAll(() => system?.stop());
logOnFailure(() => system);

async function seed(project: Project, count: number): Promise<void> {
  const collection = system.registryDatabase.client
    .db(system.registryDatabase.name)
    .collection<{ _id: string }>("devices");
  const { device } = await project.register({ metadata: { plan: "free" } });
  const row = await collection.findOne({ _id: device.id });
  if (!row) throw new Error("the device is not stored");
  const id = (n: number) => `${device.id.slice(0, -6)}${String(n).padStart(6, "0")}`;
  for (let from = 1; from < count; from += 2_000)
    await collection.insertMany(
      Array.from({ length: Math.min(2_000, count - from) }, (_, n) => ({
        ...row,
        _id: id(from + n),
        tokenHash: `seeded-${from + n}`,
        bucket: (from + n) % 4_096,
      })),
    );
}

/** Milliseconds of processor that a service has used. */
async function cpuMs(name: "registry" | "analytics"): Promise<number> {
  const stat = await readFile(`/proc/${system.services[name].pid()}/stat`, "utf8");
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return (Number(fields[11]) + Number(fields[12])) * 10;
}

/** Every device of the project is read. */
const scan = { title: "Hello", targets: ["all"], dry_run: true } as const;
const dryRun = (project: Project): Promise<Answered> =>
  project.call("POST /notifications", { body: { notification: scan } });

test("as many dry runs as a project likes leave another's requests places", async ({ task }) => {
  const before = await cpuMs("registry");
  const asked = scale(2_000, 400);
  const noise = Array.from({ length: asked }, () => dryRun(noisy));
  const others: Answered[] = [];
  for (let n = 0; n < 10; n++) others.push(await dryRun(quiet), await quiet.call("GET /devices?page=1"));
  const noiseAnswers = await Promise.all(noise);
  const refused = noiseAnswers.filter(({ status }) => status === 429 || status === 503);
  show(task, {
    "dry runs of one project": asked,
    answered: noiseAnswers.filter(({ status }) => status === 200).length,
    "asked to slow down": noiseAnswers.filter(({ status }) => status === 429).length,
    "not in time": noiseAnswers.filter(({ status }) => status === 503).length,
    "another's answered": `${others.filter(({ status }) => status === 200).length} of ${others.length}`,
    "CPU of registry, ms each": Math.round((await cpuMs("registry")) - before) / asked,
  });
  for (const one of noiseAnswers) expect([200, 429, 503]).toContain(one.status);
  for (const one of refused) expect(one.headers.get("retry-after")).toMatch(/^\d+$/);
  expect(others.map(({ status }) => status)).toEqual(others.map(() => 200));
  expect(refused.length).toBeGreaterThan(0);
});

test("pages at any depth stay empty pages, and leave another's requests places", async ({ task }) => {
  const asked = scale(1_000, 200);
  const noise = Array.from({ length: asked }, (_, n) =>
    noisy.call(`GET /devices?page=${n % 2 ? 100_000 : 30}&per_page=100`),
  );
  const others: Answered[] = [];
  for (let n = 0; n < 10; n++) others.push(await quiet.call("GET /devices?page=1"));
  const answers = await Promise.all(noise);
  const served = answers.filter(({ status }) => status === 200);
  show(task, {
    "deep pages of one project": asked,
    answered: served.length,
    "another's answered": `${others.filter(({ status }) => status === 200).length} of ${others.length}`,
  });
  for (const { status } of answers) expect([200, 429, 503]).toContain(status);
  expect(others.map(({ status }) => status)).toEqual(others.map(() => 200));
  // Those beyond a line of a hundred: such deep pages are refused instead of making others wait.
  expect(answers.some(({ status }) => status === 429)).toBe(true);
  const empty = expectStatus(await noisy.call("GET /devices?page=100000&per_page=100"), 200);
  expect(empty.body).toMatchObject({ data: [], pagination: { page: 100_000, from: 0, to: 0 } });
});
