import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { expect } from "vitest";
import { readMetrics } from "./harness/metrics.ts";
import { findPromtool } from "./harness/promtool.ts";
import { test } from "./harness/shared-system.ts";
import { logOnFailure, type System, serviceNames } from "./harness/system.ts";

/** What Prometheus' own checker says of the metrics and of the rules. */

let system: System;
let promtool: string;
test.beforeAll(async ({ system: shared }) => {
  system = shared;
  promtool = await findPromtool(process.env);
});
logOnFailure(() => system);

const check = async (args: readonly string[], input = ""): Promise<string> => {
  const process = spawn(promtool, ["check", ...args], { stdio: ["pipe", "pipe", "pipe"] });
  const ended = once(process, "close");
  process.stdin.end(input);
  const output = (await text(process.stdout)) + (await text(process.stderr));
  const [code] = await ended;
  return `${output}exit ${code}`;
};

test("promtool accepts the metrics of each service while they send", async () => {
  const project = await system.project();
  const { device } = await project.register();
  const { id } = await project.send({ title: "Hello", targets: [`device:${device.id}`] });
  await project.final(id);
  for (const service of serviceNames)
    expect([service, await check(["metrics"], await readMetrics(system.services[service].metrics))]).toEqual([
      service,
      "exit 0",
    ]);
});

test("promtool refuses a gauge with the label of a summary", async () => {
  const gauge = "# HELP late_seconds Late.\n# TYPE late_seconds gauge\n";
  expect(await check(["metrics"], `${gauge}late_seconds{quantile="0.5"} 1\n`)).toMatch(/quantile.*exit 3/s);
  expect(await check(["metrics"], `${gauge}late_seconds 1\n`)).toBe("exit 0");
});

test("promtool accepts the alert rules", async () => {
  const rules = join(import.meta.dirname, "../infra/observability/alerts.yml");
  expect(await check(["rules", rules])).toMatch(/SUCCESS.*exit 0/s);
});
