import { randomUUID } from "node:crypto";
import { eventually, expectStatus, readPublished, request } from "@herald/testing";
import { beforeAll, describe, expect, test } from "vitest";
import type { Collector, Span } from "../harness/collector.ts";
import { readMetrics } from "../harness/metrics.ts";
import { apnsToken } from "../harness/project.ts";
import { payloadOf } from "../harness/simulators.ts";
import { type ServiceName, type System, serviceNames } from "../harness/system.ts";
import type { OwnSystem } from "./own-system.ts";

/** Exporters send their data every few seconds. */
const exported = { timeoutMs: 30_000 };

/** A new trace, started by the caller. */
function newTrace() {
  const hex = randomUUID().replaceAll("-", "");
  const [traceId, spanId] = [hex, hex.slice(0, 16)];
  return { traceId, spanId, headers: { traceparent: `00-${traceId}-${spanId}-01` } };
}

/** The span and its ancestors, up to a span without a known parent. */
function ancestors(span: Span, all: readonly Span[]): Span[] {
  const parent = all.find(({ spanId }) => spanId === span.parentSpanId);
  return parent ? [span, ...ancestors(parent, all)] : [span];
}

const send = "push.cmd.v1.dispatch.send.:projectId.:notificationId";
const expand = "push.cmd.v1.registry.expand.:projectId.:notificationId.:page";
const deliver = "push.deliver.v1.:lane.:platform.:projectId";

/** Expects the only system that exports its spans, and writes all log lines. It cuts the database, and heals it. */
export function testTelemetry(own: () => OwnSystem): void {
  let system: System;
  let collector: Collector;
  beforeAll(() => {
    ({ system, collector } = own());
  });

  describe("traces", () => {
    /** The spans from the request to the call of APNs, and all spans of the trace. */
    const wayOf = async (trace: ReturnType<typeof newTrace>) => {
      const [call, all] = await eventually(() => {
        const mine = collector.spans.filter(({ traceId }) => traceId === trace.traceId);
        const last = mine.find(({ name }) => name === "send apns");
        if (!last || ancestors(last, mine).at(-1)?.parentSpanId !== trace.spanId)
          throw new Error("not all is here yet");
        return [last, mine] as const;
      }, exported);
      const way = ancestors(call, all).map(({ service, name }) => `${service}: ${name}`);
      return { way: way.reverse(), all };
    };

    test("one trace goes from the caller's request over the bus to the call of APNs", async () => {
      const project = await system.project();
      await project.register({ topics: ["traced"] });
      const trace = newTrace();
      const { id } = await project.send({ title: "Hello", targets: ["topic:traced"] }, trace.headers);
      await project.final(id);
      const { way, all } = await wayOf(trace);
      expect(way).toEqual([
        "herald-gateway: POST /api/v1/notifications",
        `herald-gateway: publish ${send}`,
        `herald-dispatch: process ${send}`,
        `herald-dispatch: publish ${expand}`,
        `herald-registry: process ${expand}`,
        `herald-registry: publish ${deliver}`,
        `herald-dispatch: process ${deliver}`,
        "herald-dispatch: send apns",
      ]);
      for (const consumer of all.filter(({ name }) => name.startsWith("process ")))
        expect(consumer.links, consumer.name).toMatchObject([
          { traceId: trace.traceId, spanId: consumer.parentSpanId },
        ]);
      // A process writes its lines up to a tenth of a second later.
      await eventually(() => {
        const traced = system.logs.lines.filter(({ traceId }) => traceId === trace.traceId).map(({ part }) => part);
        expect(traced).toEqual(expect.arrayContaining(["gateway", "dispatch", "registry"]));
      });
    });

    test("the trace of a single send continues after its group is split", async () => {
      const project = await system.project();
      const { device } = await project.register();
      const trace = newTrace();
      const { id } = await project.send({ title: "Hello", targets: [device.id] }, trace.headers);
      await project.final(id);
      const { way } = await wayOf(trace);
      expect(way).toEqual([
        "herald-gateway: POST /api/v1/notifications",
        "herald-dispatch: deliver send",
        "herald-dispatch: send apns",
      ]);
    });

    test("the trace of an open continues in analytics and in its event", async () => {
      const project = await system.project();
      const { device } = await project.register();
      const { id } = await project.send({ title: "Hello", targets: [device.id] });
      await project.final(id);
      const [push] = (await system.simulators.pushes()).filter((one) => payloadOf(one).notification_id === id);
      if (!push) throw new Error("it did not arrive");
      const trace = newTrace();
      const body = { project_id: project.id, token: payloadOf(push).token };
      const opened = await request(`${system.gateway}/api/v1`, `PUT /notifications/${id}/open`, {
        body,
        headers: trace.headers,
      });
      expect(opened.status).toBe(204);
      await eventually(() => {
        const mine = collector.spans.filter(
          ({ traceId, links = [] }) =>
            traceId === trace.traceId || links.some((link) => link.traceId === trace.traceId),
        );
        const names = mine.map(({ service, name }) => `${service}: ${name}`);
        expect(names).toContain("herald-gateway: PUT /api/v1/notifications/:id/open");
        expect(names).toContain("herald-analytics: process push.opens.v1.:projectId");
      }, exported);
    });
  });

  describe("metrics", () => {
    const read = async (service: ServiceName) => {
      const answer = expectStatus(await request(system.services[service].metrics, "GET "), 200);
      expect(answer.headers.get("content-type")).toMatch(/^text\/plain/);
      return answer.text.split("\n").filter((line) => line !== "");
    };
    /** The value of a series whose labels include these. */
    const value = (lines: readonly string[], name: string, labels: Record<string, string> = {}): number => {
      const found = lines.filter(
        (line) =>
          /^[^{ ]+/.exec(line)?.[0] === name &&
          Object.entries(labels).every(([label, wanted]) => line.includes(`${label}="${wanted}"`)),
      );
      return found.reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(" ") + 1)), 0);
    };

    test.for(serviceNames)("%s serves metrics in Prometheus' format", async (service) => {
      const lines = await read(service);
      const label = `[a-zA-Z_]\\w*="(?:[^"\\\\]|\\\\.)*"`;
      const sample = new RegExp(
        `^[a-zA-Z_:][\\w:]*(?:\\{${label}(?:,${label})*\\})? (?:[-+]?[\\d.]+(?:e[-+]?\\d+)?|[-+]Inf|NaN)$`,
      );
      for (const line of lines) expect(line).toMatch(line.startsWith("#") ? /^# (HELP|TYPE|UNIT) \w+ ./ : sample);
      expect(value(lines, "process_resident_memory_bytes")).toBeGreaterThan(0);
      expect(value(lines, "process_cpu_seconds_total", { mode: "user" })).toBeGreaterThan(0);
      expect(lines.some((line) => line.startsWith("nodejs_eventloop_delay_p99_seconds"))).toBe(true);
      expect(
        value(lines, "http_server_request_duration_count", { http_route: "/readyz", http_response_status_code: "200" }),
      ).toBeGreaterThan(0);
    });

    test("each service counts what it accepted, pushed or recorded", async () => {
      const before = { gateway: await read("gateway"), dispatch: await read("dispatch") };
      const project = await system.project();
      const devices = await Promise.all([project.register(), project.register(), project.register()]);
      const { id } = await project.send({ title: "Hello", targets: devices.map(({ device }) => device.id) });
      await project.final(id);
      await eventually(async () => {
        const after = { gateway: await read("gateway"), dispatch: await read("dispatch") };
        const grown = (service: "gateway" | "dispatch", name: string, labels: Record<string, string>) =>
          value(after[service], name, labels) - value(before[service], name, labels);
        const accepted = { http_route: "/api/v1/notifications", http_response_status_code: "202" };
        expect(grown("gateway", "http_server_request_duration_count", accepted)).toBe(1);
        expect(grown("dispatch", "herald_dispatch_pushes_total", { provider: "apns", outcome: "accepted" })).toBe(3);
        const settled = { durable: "dispatch-send-groups", outcome: "acked" };
        expect(grown("dispatch", "herald_bus_settled_total", settled)).toBe(1);
        const expanded = { durable: "registry-expand", outcome: "acked" };
        expect(value(await read("registry"), "herald_bus_settled_total", expanded)).toBeGreaterThan(0);
      });
      await eventually(async () => {
        const analytics = await read("analytics");
        expect(value(analytics, "herald_bus_settled_total", { durable: "analytics-open-groups" })).toBeGreaterThan(0);
      });
    });

    test.for(serviceNames)("the histograms of %s distinguish milliseconds from seconds", async (service) => {
      const lines = await read(service);
      const histograms = lines.flatMap((line) => /^# TYPE (\w+) histogram$/.exec(line)?.[1] ?? []);
      expect(histograms.length).toBeGreaterThan(0);
      for (const name of histograms) {
        const bounds = lines
          .filter((line) => line.startsWith(`${name}_bucket`))
          .map((line) => Number(/[{,]le="([^"]+)"/.exec(line)?.[1]))
          .filter((bound) => bound > 0 && bound < 1);
        expect(bounds.length, name).toBeGreaterThan(3);
      }
    });
  });

  test("no token, no content and no secret is in a log, a span, a metric or a subject", async () => {
    const plant = (what: string) => `planted-${what}-${randomUUID()}`;
    // Every text contains the empty one, so a user without a password fails this test.
    const natsPasswordOf = (name: "gateway" | "dispatch") => system.broker.loginOf(name).HERALD_NATS_PASSWORD ?? "";
    const project = await system.project();
    const planted = {
      title: plant("title"),
      body: plant("body"),
      data: plant("data"),
      link: plant("link"),
      metadata: plant("metadata"),
      identifier: plant("identifier"),
      query: plant("query"),
      key: plant("key"),
      pushToken: apnsToken("5e"),
      goneToken: apnsToken("d1"),
      projectToken: project.token,
      adminToken: system.adminToken,
      gatewayNatsPassword: natsPasswordOf("gateway"),
      dispatchNatsPassword: natsPasswordOf("dispatch"),
      deviceCredential: "",
      openToken: "",
    };
    await system.simulators.script([{ provider: "apns", tokenPrefix: "d1", status: 400, reason: "BadDeviceToken" }]);
    const app = { metadata: { name: planted.metadata }, identifiers: { model: planted.identifier } };
    const { device, credential } = await project.register({ token: planted.pushToken, ...app });
    await project.register({ token: planted.goneToken, ...app });
    planted.deviceCredential = credential;
    const content = {
      title: planted.title,
      body: planted.body,
      data: { secret: planted.data },
      link_to: `https://shop.example/${planted.link}`,
    };
    const targets = [`token:${planted.pushToken}`, `token:${planted.goneToken}`, `metadata:name=${planted.metadata}`];
    const { id } = await project.send({ ...content, targets }, { "idempotency-key": planted.key });
    await project.final(id);
    const [push] = await system.simulators.pushes({ token: planted.pushToken });
    if (!push) throw new Error("it did not arrive");
    planted.openToken = payloadOf(push).token;

    // Failures log more: refusals of every kind, and an unavailable database.
    const open = { project_id: project.id, token: planted.openToken };
    const api = `${system.gateway}/api/v1`;
    expect((await request(api, `PUT /notifications/${id}/open`, { body: open })).status).toBe(204);
    expect((await project.call(`GET /devices?search=${planted.query}`)).status).toBe(422);
    expect((await project.call(`GET /devices/${planted.query}`)).status).toBe(404);
    expect((await project.call("POST /notifications", { body: `{"title":"${planted.title}` })).status).toBe(400);
    const wrong = { notification: { ...content, targets, [planted.metadata]: 1, title: planted.title.repeat(10) } };
    expect((await project.call("POST /notifications", { body: wrong })).status).toBe(422);
    expect((await project.call("GET /devices", { token: `${project.token}x` })).status).toBe(401);
    const client = { project_id: project.id, identifier: planted.pushToken, metadata: { name: planted.metadata } };
    expect((await request(api, "PATCH /metadata", { body: client })).status).toBe(200);
    await system.database.cut();
    expect((await request(api, "PATCH /metadata", { body: client })).status).toBe(503);
    expect((await project.call(`GET /devices/${device.id}`, { token: credential })).status).toBe(503);
    const late = await project.send({ ...content, targets });
    await system.database.heal();
    await system.ready();
    await project.final(late.id);

    // The search finds allowed values among logs and events, so it would also find forbidden ones.
    await eventually(() => {
      const settled = system.logs.lines.filter(({ part, msg }) => part === "analytics" && msg === "message settled");
      expect(settled.length).toBeGreaterThan(0);
      expect(system.logs.lines.filter(({ line }) => line.includes(id)).length).toBeGreaterThan(2);
      expect(collector.spans.filter(({ name }) => name === "send apns").length).toBeGreaterThanOrEqual(3);
    }, exported);
    const metrics = await Promise.all(serviceNames.map((name) => readMetrics(system.services[name].metrics)));
    const events = await eventually(async () => {
      const found = await readPublished(system.broker);
      expect(found.filter((event) => JSON.stringify(event).includes(device.id)).length).toBeGreaterThan(2);
      return found;
    });
    const places = {
      logs: system.logs.lines.map(({ line }) => line),
      spans: collector.bodies,
      metrics,
      events: events.map((event) => JSON.stringify(event)),
    };
    const found = Object.entries(places).flatMap(([place, texts]) =>
      Object.entries(planted).flatMap(([what, secret]) =>
        texts.filter((text) => text.includes(secret)).map((text) => `${what} in ${place}: ${text.slice(0, 500)}`),
      ),
    );
    expect(found).toEqual([]);
  });
}
