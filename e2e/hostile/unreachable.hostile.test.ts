import { type Simulators, startSimulators } from "@herald/simulators";
import { eventually, expectStatus } from "@herald/testing";
import { afterAll, expect } from "vitest";
import { readMetrics } from "../harness/metrics.ts";
import type { Project } from "../harness/project.ts";
import { seed } from "../harness/seed.ts";
import { logOnFailure, type System } from "../harness/system.ts";
import { show } from "./figures.ts";
import { test } from "./shared-system.ts";
import { closeRelays, unreachable } from "./unreachable.ts";

let system: System;
let others: Simulators;
test.beforeAll(async ({ system: shared }) => {
  // Servers of another certificate authority, whose push service supports only HTTP/1.1.
  others = await startSimulators({ webpush: { http1Only: true } });
  system = shared;
});
afterAll(async () => {
  await Promise.all([others?.stop(), closeRelays()]);
});
logOnFailure(() => system);

const dispatchMetric = async (name: string, label: string): Promise<number> => {
  const text = await readMetrics(system.services.dispatch.metrics);
  const values = text.split("\n").filter((line) => line.startsWith(`${name}{`) && line.includes(label));
  return values.reduce((sum, line) => sum + Number(line.split(" ").at(-1)), 0);
};

const apnsOf = async ({ id }: Project) =>
  expectStatus(await system.admin(`GET /projects/${id}/providers/apns`), 200).body.data;

test.for(unreachable)(
  "$what: project and operator are told, until the settings change",
  async ({ reason, words, change }, { task }) => {
    const project = await system.project("Unreachable", []);
    await system.putProvider(project, "apns", await change(others));
    const { device } = await project.register();
    await seed(system, project, 40);
    const all = await project.send({ title: "To all", targets: ["all"] });
    const one = await project.send({ title: "To one", targets: [device.id] });

    const { problems } = await eventually(
      async () => {
        const found = await apnsOf(project);
        expect(found.problems?.[0]).toMatchObject({ reason });
        return found;
      },
      { timeoutMs: 20_000 },
    );
    expect(problems[0].detail).toMatch(words);
    for (const { id } of [all, one]) {
      const { attempts, explanation } = await eventually(async () => {
        const trace = expectStatus(await project.call(`GET /notifications/${id}/devices/${device.id}`), 200).body.data;
        expect(trace.attempts.at(-1)?.provider_reason ?? "").toMatch(words);
        return trace;
      });
      expect(attempts.length).toBeGreaterThan(0);
      expect(explanation.join(" ")).toMatch(words);
    }
    expect(await dispatchMetric("herald_dispatch_unreachable_total", `reason="${reason}"`)).toBeGreaterThan(0);
    // A process writes its lines up to a tenth of a second later.
    const lines = await eventually(() => {
      const found = system.logs.lines.filter(
        ({ part, projectId, msg }) =>
          part === "dispatch" && projectId === project.id && /cannot be reached/.test(String(msg)),
      );
      expect(found.length).toBeGreaterThan(0);
      return found;
    });
    expect(lines.length).toBeLessThanOrEqual(3);

    await system.putProvider(project, "apns");
    const mended = Date.now();
    for (const { id } of [all, one]) await project.final(id, 30_000);
    expect((await project.notification(one.id)).counts).toMatchObject({ accepted: 1 });
    await eventually(async () => expect((await apnsOf(project)).problems).toBeUndefined());
    show(task, {
      told: problems[0].detail,
      "log lines": lines.length,
      "seconds until sent": Math.round((Date.now() - mended) / 1000),
    });
  },
);
