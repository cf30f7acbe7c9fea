import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { mkdtemp, readFile, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { json } from "node:stream/consumers";
import { freePort, type RunningProcess, removeAtExit, runCommand, startProcess } from "@herald/provision";
import { eventually } from "@herald/testing";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { parse, stringify } from "yaml";
import { startCollector as startReceiver } from "../harness/collector.ts";
import { logOnFailure, type System, serviceNames, startSystem } from "../harness/system.ts";
import { collector, orSkipped, prometheus } from "./programs.ts";

/** The files of infra/observability with a real Prometheus, Alertmanager and OpenTelemetry collector. */

const files = join(import.meta.dirname, "../../infra/observability");
const read = (name: string) => readFile(join(files, name), "utf8");
/** The alert waits for two minutes, and Alertmanager for what else happens. */
const alertTimeoutMs = 240_000;

const collectorProgram = await orSkipped("traces were not sent to a collector", collector);
const programs = await orSkipped("alerts were not sent by an Alertmanager", prometheus);

const folder = await mkdtemp(join(tmpdir(), "herald-observability-"));
removeAtExit(folder);
const running: RunningProcess[] = [];
const start = async (name: string, command: string, args: readonly string[]) => {
  const output = { file: join(folder, `${name}.log`) };
  running.push(
    await startProcess({ name, command, args, cwd: folder, stopSignal: "SIGTERM", stopTimeoutMs: 10_000, output }),
  );
};

let system: System;
const traces = await startReceiver();
const otlp = await freePort();
beforeAll(async () => {
  if (collectorProgram) {
    // What the file cannot know: this machine's ports, and where traces go.
    await writeFile(
      join(folder, "here.yml"),
      stringify({
        receivers: {
          otlp: {
            protocols: {
              http: { endpoint: `127.0.0.1:${otlp}` },
              grpc: { endpoint: `127.0.0.1:${await freePort()}` },
            },
          },
        },
        exporters: {
          otlphttp: {
            ...{ endpoint: traces.env.OTEL_EXPORTER_OTLP_ENDPOINT, encoding: "json", compression: "none" },
          },
        },
        service: {
          telemetry: { metrics: { level: "none" } },
          pipelines: { traces: { exporters: ["debug", "otlphttp"] } },
        },
      }),
    );
    const configs = [`--config=${join(files, "collector.yml")}`, `--config=${join(folder, "here.yml")}`];
    await start("collector", collectorProgram, configs);
  }
  system = await startSystem({
    env: {
      OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${otlp}`,
      OTEL_METRICS_EXPORTER: "otlp",
      OTEL_BSP_SCHEDULE_DELAY: "500",
    },
  });
});
afterAll(async () => {
  for (const one of running.reverse()) await one.stop();
  await system?.stop();
  await traces.stop();
});
logOnFailure(() => system);

describe.runIf(collectorProgram)("an OpenTelemetry collector", () => {
  test("accepts collector.yml as it is", async () => {
    const options = { timeoutMs: 60_000 };
    const done = await runCommand(
      String(collectorProgram),
      ["validate", `--config=${join(files, "collector.yml")}`],
      options,
    );
    expect(done).toMatchObject({ ok: true, why: "" });
  });

  test("gets a trace of all services from the caller's on, and every parent", async () => {
    const project = await system.project();
    await project.register({ topics: ["news"] });
    const [traceId, parent] = [randomUUID().replaceAll("-", ""), randomUUID().replaceAll("-", "").slice(0, 16)];
    await project.send({ title: "Hello", targets: ["topic:news"] }, { traceparent: `00-${traceId}-${parent}-01` });
    await eventually(
      () => {
        const mine = traces.spans.filter((span) => span.traceId === traceId);
        expect(new Set(mine.map(({ service }) => service))).toEqual(
          new Set(serviceNames.map((name) => `herald-${name}`)),
        );
        const known = new Set([parent, ...mine.map(({ spanId }) => spanId)]);
        expect(
          mine.filter(({ parentSpanId = "", links = [] }) => !known.has(parentSpanId) && links.length === 0),
        ).toEqual([]);
      },
      { timeoutMs: 60_000 },
    );
  });
});

describe.runIf(programs)("Prometheus and Alertmanager", () => {
  const alerts: { status: string; labels: Record<string, string>; annotations: Record<string, string> }[] = [];
  const receiver = createServer(async (request, response) => {
    alerts.push(...((await json(request)) as { alerts: typeof alerts }).alerts);
    response.end();
  });
  let url: string;
  const ask = async (path: string) => {
    const response = await fetch(`${url}/api/v1/${path}`);
    return (await response.json()) as {
      status: string;
      error?: string;
      data: Record<string, unknown> & { result: unknown[] };
    };
  };
  beforeAll(async () => {
    const { prometheus: server, alertmanager } = programs as NonNullable<typeof programs>;
    await once(receiver.listen(0, "127.0.0.1"), "listening");
    const hook = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/`;
    const [port, managerPort] = [await freePort(), await freePort()];
    url = `http://127.0.0.1:${port}`;
    const config = parse(await read("prometheus.yml"));
    // Of the project's file only the names of compose's containers change, and how long the test waits.
    for (const one of config.scrape_configs[0].static_configs)
      one.targets = [new URL(system.services[one.labels.service as (typeof serviceNames)[number]].metrics).host];
    config.global = { scrape_interval: "1s", evaluation_interval: "1s" };
    config.alerting = { alertmanagers: [{ static_configs: [{ targets: [`127.0.0.1:${managerPort}`] }] }] };
    await writeFile(join(folder, "prometheus.yml"), stringify(config));
    await writeFile(join(folder, "alerts.yml"), await read("alerts.yml"));
    const route = { receiver: "all", group_wait: "1s", group_interval: "1s", group_by: ["alertname"] };
    const receivers = [{ name: "all", webhook_configs: [{ url: hook }] }];
    await writeFile(join(folder, "alertmanager.yml"), stringify({ route, receivers }));
    await start("prometheus", server, [
      `--config.file=${join(folder, "prometheus.yml")}`,
      ...[`--storage.tsdb.path=${join(folder, "tsdb")}`, `--web.listen-address=127.0.0.1:${port}`],
    ]);
    await start("alertmanager", alertmanager, [
      `--config.file=${join(folder, "alertmanager.yml")}`,
      ...[`--storage.path=${join(folder, "am")}`, `--web.listen-address=127.0.0.1:${managerPort}`],
      "--cluster.listen-address=",
    ]);
  });
  afterAll(() => void receiver.close());

  test("Prometheus scrapes the four services by prometheus.yml", async () => {
    await eventually(
      async () => {
        const { data } = await ask(`query?query=${encodeURIComponent('sum(up{job="herald"})')}`);
        expect(data.result).toMatchObject([{ value: [expect.anything(), "4"] }]);
      },
      { timeoutMs: 60_000 },
    );
  });

  test("it evaluates every alert, and every query of the dashboard", async () => {
    const project = await system.project();
    const { device } = await project.register();
    await project.final((await project.send({ title: "Hello", targets: [`device:${device.id}`] })).id);
    type Rule = { name: string; health: string; lastError?: string };
    await eventually(async () => {
      const groups = (await ask("rules")).data.groups as { rules: Rule[] }[];
      const rules = groups.flatMap((group) => group.rules);
      expect(rules.length).toBeGreaterThan(10);
      expect(rules.filter(({ health }) => health !== "ok")).toEqual([]);
    });
    const queries = [...(await read("dashboard.json")).matchAll(/"expr": ("(?:[^"\\]|\\.)*")/g)].map(
      ([, text = '""']) => String(JSON.parse(text)).replaceAll(/\$__\w+/g, "1m"),
    );
    expect(queries.length).toBeGreaterThan(20);
    for (const query of queries)
      expect([query, await ask(`query?query=${encodeURIComponent(query)}`)]).toMatchObject([
        query,
        { status: "success" },
      ]);
  });

  test("a dispatch that hangs becomes an alert at a receiver, with a name, and is resolved when it goes on", async () => {
    const pid = system.services.dispatch.pid();
    const down = (status: string) =>
      alerts.filter((one) => one.status === status && one.labels.alertname === "HeraldServiceDown");
    process.kill(pid, "SIGSTOP");
    try {
      await eventually(() => expect(down("firing")).not.toEqual([]), { timeoutMs: alertTimeoutMs });
    } finally {
      process.kill(pid, "SIGCONT");
    }
    expect(down("firing")[0]).toMatchObject({
      labels: { service: "dispatch", severity: "critical" },
      annotations: { summary: expect.stringMatching(/^dispatch on 127\.0\.0\.1:\d+ does not answer$/) },
    });
    await eventually(() => expect(down("resolved")).not.toEqual([]), { timeoutMs: alertTimeoutMs });
  });
});
