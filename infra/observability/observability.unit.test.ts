import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { createTelemetry } from "@herald/bus";
import { durables, errors, messages, providerOf, providerProblems, streams } from "@herald/contracts";
import { createByteCache, createHealth, createLogger, startHealthServer, startTelemetry } from "@herald/kit";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { createMetrics } from "../../services/dispatch/src/metrics.ts";
import { createOperatorDirectory } from "../../services/gateway/src/auth/directories.ts";
import { createGroupsFile } from "../../services/gateway/src/sign-in/groups-file.ts";
import { finds, readPromql } from "./read-promql.ts";

/** A metric as `/metrics` shows it. */
type Metric = { readonly type: string; readonly labels: Set<string> };

const root = join(import.meta.dirname, "../..");
const read = (path: string) => readFileSync(join(root, path), "utf8");
const alerts = read("infra/observability/alerts.yml");
const page = read("docs/how-to/observe.md");
const targets = [
  "job",
  "instance",
  ...[...read("infra/observability/prometheus.yml").matchAll(/\{ (\w+):/g)].map(at(1)),
];
const services = [...read("infra/observability/prometheus.yml").matchAll(/service: (\w+)/g)].map(at(1));

function at(group: number) {
  return (match: RegExpExecArray): string => match[group] ?? "";
}

/** Where the bus adds to its instruments, and with which labels: what it says there needs a broker to be run. */
const busLabels = () => {
  const folder = join(root, "packages/bus/src");
  const source = readdirSync(folder, { recursive: true, encoding: "utf8" })
    .filter((file) => file.endsWith(".ts") && !file.endsWith(".test.ts"))
    .map((file) => readFileSync(join(folder, file), "utf8"))
    .join("\n");
  const calls = source.matchAll(/telemetry\.(\w+)\.(?:add|record)\([^;{]*\{([^}]*)\}\)/g);
  return new Map(
    [...calls].map(([, field = "", labels = ""]) => [
      field,
      labels.split(",").map((one) => one.split(":")[0]?.trim() ?? ""),
    ]),
  );
};

const kinds = (path: string) => [...read(path).matchAll(/kind: "(\w+)"/g)].map(at(1));
const patterns = Object.values(messages).map(({ pattern }) => pattern);
const paths = Object.keys(JSON.parse(read("docs/reference/openapi.json")).paths);
const statuses = [
  "200",
  "202",
  "204",
  "400",
  "404",
  "429",
  ...Object.values(errors).map(({ status }) => String(status)),
];
const codes = Object.keys(errors);

/** The values that a label can have, where a query may name one. */
const valuesOf = (metric: string, label: string): readonly string[] => {
  const outcomes: Record<string, readonly string[]> = {
    herald_bus_settled_total: kinds("packages/bus/src/process-batch.ts").filter((kind) => kind !== "split"),
    herald_bus_publish_seconds: ["stored", "duplicate", ...codes],
    herald_bus_request_seconds: ["answered", ...codes],
    herald_dispatch_pushes_total: [...kinds("services/dispatch/src/domain/outcome.ts"), "not_sent"],
  };
  const all: Record<string, readonly string[]> = {
    job: ["herald"],
    service: services,
    durable: Object.keys(durables),
    stream: Object.keys(streams),
    pattern: [...patterns, ...patterns.map((pattern) => `schedule ${pattern}`)],
    outcome: outcomes[metric] ?? [],
    provider: Object.values(providerOf),
    reason: Object.keys(providerProblems),
    http_route: ["/livez", "/readyz", ...paths],
    http_request_method: ["GET", "POST", "PUT", "PATCH", "DELETE"],
    http_response_status_code: statuses,
    mode: ["user", "system"],
  };
  return all[label] ?? [];
};

const stops: (() => Promise<unknown>)[] = [];
const metrics = new Map<string, Metric>();

/** Every instrument that there is, used once, as Prometheus is shown it. */
beforeAll(async () => {
  const options = { service: "test", metricsHost: "127.0.0.1", metricsPort: 0 };
  const telemetry = await startTelemetry(options);
  stops.push(telemetry.stop);
  const log = createLogger({ service: "test", level: "silent" });
  const health = createHealth({ any: () => "it is not ready" });
  const http = await startHealthServer(health, log, { host: "127.0.0.1", port: 0 });
  stops.push(() => http.stop(100));
  await fetch(`${http.address}/readyz`);

  const labels = busLabels();
  const { consumers, ...instruments } = createTelemetry();
  consumers.add({ durable: "any", inFlight: () => 1, waiting: () => 1 });
  for (const [field, instrument] of Object.entries(instruments)) {
    const names = labels.get(field);
    if (!names) throw new Error(`nothing in packages/bus adds to telemetry.${field}, or it is written in another way`);
    const attributes = Object.fromEntries(names.map((name) => [name, "any"]));
    if ("record" in instrument) instrument.record(1, attributes);
    else instrument.add(1, attributes);
  }
  const operators = createOperatorDirectory("root", {} as never, {} as never, (own) => own);
  await operators.find("root", "203.0.113.7");
  const groups = createGroupsFile("/dev/null", log);
  await groups.start();
  stops.push(async () => groups.stop());
  const dispatch = createMetrics();
  dispatch.sent("apns", [{ kind: "accepted" }], 1);
  dispatch.paused("apns");
  dispatch.pausedSends(1, true);
  dispatch.breaker("apns", "opened");
  dispatch.unreached("apns", "name-not-found");
  dispatch.spike();
  dispatch.backlogs(1, 1);
  createByteCache({ name: "any", maxBytes: 1, sizeOf: () => 1 });

  const scrape = async () => (await fetch(`http://127.0.0.1:${telemetry.metricsPort}/metrics`)).text();
  // Measured when the answer is gone, which its reader may see first.
  await vi.waitFor(async () => expect(await scrape()).toContain("http_server_request_duration_count"), {
    timeout: 20_000,
  });
  for (const line of (await scrape()).split("\n")) {
    const [, declared = "", type = ""] = /^# TYPE (\w+) (\w+)$/.exec(line) ?? [];
    if (declared !== "") metrics.set(declared, { type, labels: new Set() });
    const [, sample = "", pairs = ""] = /^(\w+)\{(.*)\} \S+$/.exec(line) ?? [];
    const { metric } = measured(sample) ?? {};
    for (const [, label = ""] of pairs.matchAll(/(\w+)="/g)) metric?.labels.add(label);
  }
});
afterAll(async () => {
  for (const stop of stops.reverse()) await stop();
});

/** The metric of a series: a histogram's series have names of their own. */
const measured = (series: string): { name: string; metric: Metric } | undefined => {
  const own = metrics.get(series);
  if (own && own.type !== "histogram") return { name: series, metric: own };
  const base = series.replace(/_(?:bucket|sum|count)$/, "");
  const histogram = metrics.get(base);
  return base !== series && histogram?.type === "histogram" ? { name: base, metric: histogram } : undefined;
};

/** What a query says that no service does: metrics, labels and values that there are not. */
const mistakes = (expression: string): string[] => {
  const { selectors, labels } = readPromql(expression);
  if (selectors.length === 0) return [`no series in ${expression}`];
  const known = new Set(targets);
  const wrong: string[] = [];
  for (const { name, matchers } of selectors) {
    const found = name === "up" ? { name, metric: { labels: new Set<string>() } } : measured(name);
    if (!found) {
      wrong.push(`no metric ${name}`);
      continue;
    }
    for (const label of found.metric.labels) known.add(label);
    for (const matcher of matchers) {
      const { label, operator, value } = matcher;
      if (!targets.includes(label) && !found.metric.labels.has(label)) wrong.push(`${name} has no label ${label}`);
      else if (!finds(matcher, valuesOf(found.name, label)))
        wrong.push(`${name} never has ${label}${operator}"${value}"`);
    }
  }
  return [...wrong, ...labels.filter((label) => !known.has(label)).map((label) => `nothing has the label ${label}`)];
};

/** The rules of the file: each has a name, an expression on one line or indented under `|`, and a summary. */
const rules = alerts
  .split(/^ {6}- alert: /m)
  .slice(1)
  .map((rule) => {
    const [, line = "", block = ""] = /^ {8}expr: (?:([^|\n].*)|\|\n((?: {10}.*\n)+))/m.exec(rule) ?? [];
    return { name: rule.slice(0, rule.indexOf("\n")), expression: (line || block).trim(), rule };
  });

test("only summaries and histograms have the labels that Prometheus keeps for them", () => {
  const kept = { quantile: "summary", le: "histogram" };
  for (const [name, { type, labels }] of metrics)
    for (const [label, owner] of Object.entries(kept)) if (type !== owner) expect(labels, name).not.toContain(label);
});

describe("the alerts", () => {
  test("there are some, each with an expression, a severity and a summary", () => {
    expect(rules.length).toBe(alerts.match(/alert:/g)?.length);
    for (const { name, expression, rule } of rules) {
      expect(expression, name).not.toBe("");
      expect(rule, name).toMatch(/labels: \{ severity: (?:warning|critical) \}/);
      expect(rule, name).toMatch(/summary: ".+"/);
    }
  });

  test.for(rules)("$name asks for what is there, and tells what it found", ({ expression, rule }) => {
    expect(mistakes(expression)).toEqual([]);
    const { selectors, labels } = readPromql(expression);
    const own = selectors.flatMap(({ name }) => [...(measured(name)?.metric.labels ?? [])]);
    const left = /\b(?:sum|max|histogram_quantile|topk)\b/.test(expression) ? labels : [...targets, ...own];
    for (const [, label] of rule.matchAll(/\$labels\.(\w+)/g)) expect(left).toContain(label);
  });

  test("each has its heading on the page, and each heading its alert", () => {
    const headings = [...page.matchAll(/^### (Herald\w+)$/gm)].map(at(1));
    expect(headings.toSorted()).toEqual(rules.map(({ name }) => name).toSorted());
  });
});

describe("the dashboard", () => {
  type Panel = { id: number; title: string; type: string; targets?: { expr: string; legendFormat: string }[] };
  const { panels } = JSON.parse(read("infra/observability/dashboard.json")) as { panels: Panel[] };
  const shown = panels.filter(({ type }) => type !== "row");

  test.for(shown)("$title shows what is there", ({ targets: queries = [] }) => {
    expect(queries.length).toBeGreaterThan(0);
    for (const { expr, legendFormat } of queries) {
      expect(mistakes(expr)).toEqual([]);
      const { selectors, labels } = readPromql(expr);
      const own = selectors.flatMap(({ name }) => [...(measured(name)?.metric.labels ?? [])]);
      for (const [, label] of legendFormat.matchAll(/\{\{(\w+)\}\}/g))
        expect([...targets, ...own, ...labels]).toContain(label);
    }
  });

  test("every metric of Herald has a panel, and panels have ids of their own", () => {
    const seen = shown.flatMap(({ targets: queries = [] }) =>
      queries.flatMap(({ expr }) => readPromql(expr).selectors.map(({ name }) => measured(name)?.name ?? name)),
    );
    expect([...metrics.keys()].filter((name) => name !== "target_info" && !seen.includes(name))).toEqual([]);
    expect(new Set(panels.map(({ id }) => id)).size).toBe(panels.length);
  });
});

describe("the page", () => {
  test("its table is every metric with its type and its labels, and no other", () => {
    const rows = [...page.matchAll(/^\| `(\w+)` \| (counter|gauge|histogram) \|([^|]*)\|/gm)].map(
      ([, name, type, labels = ""]) => {
        const told = [...labels.matchAll(/`(\w+)`/g)].map(at(1));
        return [name, type, told.toSorted()];
      },
    );
    const real = [...metrics].map(([name, { type, labels }]) => [
      name,
      type,
      [...labels].filter((label) => label !== "le").toSorted(),
    ]);
    expect(rows.toSorted()).toEqual(real.toSorted());
  });

  test("its queries are of metrics that there are", () => {
    const queries = [...page.matchAll(/^```promql\n([\s\S]*?)^```$/gm)].map(at(1));
    expect(queries.length).toBeGreaterThan(0);
    for (const query of queries) expect(mistakes(query)).toEqual([]);
  });
});

test("a query with a wrong name, label or value is found out", () => {
  const ok =
    'sum by (durable) (rate(herald_bus_settled_total{job="herald", outcome=~"acked|dead_lettered"}[5m])) > 1e3';
  expect(mistakes(ok)).toEqual([]);
  expect(mistakes(ok.replace("_total", ""))).toEqual(["no metric herald_bus_settled", "nothing has the label durable"]);
  expect(mistakes(ok.replace("outcome", "result"))).toEqual(["herald_bus_settled_total has no label result"]);
  expect(mistakes(ok.replace("dead_lettered", "gone"))).toEqual([
    'herald_bus_settled_total never has outcome=~"acked|gone"',
  ]);
  expect(mistakes(ok.replace("(durable)", "(lane)"))).toEqual(["nothing has the label lane"]);
  expect(mistakes("herald_bus_process_seconds > 1")).toEqual(["no metric herald_bus_process_seconds"]);
});
