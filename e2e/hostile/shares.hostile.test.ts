import { readFile } from "node:fs/promises";
import { expectStatus, type HttpAnswer } from "@herald/testing";
import { expect } from "vitest";
import type { Project } from "../harness/project.ts";
import { logOnFailure, type System } from "../harness/system.ts";
import { show } from "./figures.ts";
import { scale } from "./scale.ts";
import { test } from "./shared-system.ts";

/** The effects of a noisy project on another project. */
let system: System;
let noisy: Project;
let quiet: Project;
const devices = scale(20_000, 2_000);
test.beforeAll(async ({ system: shared }) => {
  system = shared;
  [noisy, quiet] = [await system.project("Noisy"), await system.project("Quiet")];
  await seed(noisy, devices);
  await quiet.register();
});
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

/** CPU time of a service in milliseconds. */
async function cpuMs(name: "registry" | "analytics"): Promise<number> {
  const stat = await readFile(`/proc/${system.services[name].pid()}/stat`, "utf8");
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return (Number(fields[11]) + Number(fields[12])) * 10;
}

/** A dry run that reads every device of the project. */
const scan = { title: "Hello", targets: ["all"], dry_run: true } as const;
const dryRun = (project: Project): Promise<HttpAnswer> =>
  project.call("POST /notifications", { body: { notification: scan } });

test("one project's dry runs do not block another's requests", async ({ task }) => {
  const before = await cpuMs("registry");
  const asked = scale(2_000, 400);
  const noise = Array.from({ length: asked }, () => dryRun(noisy));
  const others: HttpAnswer[] = [];
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

test("pages beyond the end are empty and block nothing", async ({ task }) => {
  const asked = scale(1_000, 200);
  const noise = Array.from({ length: asked }, (_, n) =>
    noisy.call(`GET /devices?page=${n % 2 ? 100_000 : 30}&per_page=100`),
  );
  const others: HttpAnswer[] = [];
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
  // Beyond a queue of 100, deep pages are refused so that others do not wait.
  expect(answers.some(({ status }) => status === 429)).toBe(true);
  const empty = expectStatus(await noisy.call("GET /devices?page=100000&per_page=100"), 200);
  expect(empty.body).toMatchObject({ data: [], pagination: { page: 100_000, from: 0, to: 0 } });
});
