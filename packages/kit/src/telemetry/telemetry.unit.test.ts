import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { context, propagation, trace } from "@opentelemetry/api";
import { afterEach, expect, test, vi } from "vitest";
import { HeraldError } from "../herald-error.ts";
import { createHttpApp } from "../http/create-http-app.ts";
import { serveRoutes } from "../http/serve-routes.ts";
import { startHttp } from "../http/start-http.ts";
import { createLogger } from "../logger.ts";
import { currentRequestId, withRequestId } from "../request-context.ts";
import { inSpan, meter } from "./spans.ts";
import { startTelemetry } from "./start-telemetry.ts";

type Sent = {
  name: string;
  traceId: string;
  spanId: string;
  parentSpanId?: string;
  kind: number;
  attributes: { key: string; value: Record<string, unknown> }[];
  status: { code?: number };
};

const cleanups: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
  vi.unstubAllEnvs();
});

const options = { service: "test", metricsHost: "127.0.0.1", metricsPort: 0 };

const start = async (otlpEndpoint?: string) => {
  const telemetry = await startTelemetry({ ...options, otlpEndpoint });
  cleanups.push(telemetry.stop);
  return telemetry;
};

/** A collector that records received spans as JSON, and the path of every request. */
const collector = async () => {
  vi.stubEnv("OTEL_EXPORTER_OTLP_PROTOCOL", "http/json");
  const spans: Sent[] = [];
  const resources: Sent["attributes"] = [];
  const paths = new Set<string | undefined>();
  const server = createServer(async (request, response) => {
    let text = "";
    for await (const chunk of request) text += chunk;
    paths.add(request.url);
    if (request.url === "/v1/traces")
      for (const { resource, scopeSpans } of JSON.parse(text).resourceSpans) {
        resources.push(...resource.attributes);
        for (const scope of scopeSpans) spans.push(...scope.spans);
      }
    response.setHeader("content-type", "application/json").end("{}");
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  cleanups.push(
    () =>
      new Promise((resolve) => {
        server.close(resolve);
        server.closeAllConnections();
      }),
  );
  return { spans, resources, paths, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/` };
};

const app = async () => {
  const log = createLogger({ service: "test", level: "silent" });
  const server = await startHttp(
    createHttpApp(
      log,
      serveRoutes(
        [
          {
            method: "GET",
            pattern: "/things/:id",
            serve: (_request, response) =>
              inSpan("inner", { kind: "producer", attributes: { "herald.count": 1 } }, async () => {
                await new Promise((resolve) => setImmediate(resolve));
                response.end(JSON.stringify({ carrier: inject() }));
              }),
          },
          {
            method: "GET",
            pattern: "/away",
            serve: async () => {
              throw new HeraldError("bus-unavailable", "the bus is unavailable");
            },
          },
        ],
        { notFound: "route not found" },
      ),
    ),
    { host: "127.0.0.1", port: 0 },
  );
  cleanups.push(() => server.stop(100));
  return server.address;
};

const inject = (): Record<string, string> => {
  const carrier: Record<string, string> = {};
  propagation.inject(context.active(), carrier);
  return carrier;
};

const metricsAt = async (port: number) => (await fetch(`http://127.0.0.1:${port}/metrics`)).text();

test("/metrics has the process and the requests by pattern, and nothing else is served there", async () => {
  const { metricsPort } = await start();
  const address = await app();
  await fetch(`${address}/things/planted?token=planted`);
  await fetch(`${address}/planted`);
  await fetch(`${address}/away`);
  // Measured after the response, which the client may receive first.
  await expect.poll(() => metricsAt(metricsPort)).toContain('http_route="/away"');
  const text = await metricsAt(metricsPort);
  expect(text).toMatch(/process_cpu_seconds_total\{mode="user"\} [\d.e-]+/);
  expect(text).toMatch(/nodejs_eventloop_delay_p99_seconds [\d.e-]+/);
  expect(text).toMatch(/process_resident_memory_bytes \d{6,}/);
  const requests = text.split("\n").filter((line) => line.startsWith("http_server_request_duration_count"));
  const labels = (route: string, status: number) =>
    `http_request_method="GET",http_route="${route}",http_response_status_code="${status}",url_scheme="http"`;
  expect(requests.map((line) => /\{(.*)\} 1$/.exec(line)?.[1])).toEqual([
    labels("/things/:id", 200),
    labels("unmatched", 404),
    `${labels("/away", 503)},error_type="503"`,
  ]);
  expect(text).toContain("# UNIT http_server_request_duration s");
  expect(text).not.toContain("planted");
  expect((await fetch(`http://127.0.0.1:${metricsPort}/`)).status).toBe(404);
});

test("spans go to the collector: the request's continues the caller's trace, the inner one is its child", async () => {
  const { spans, url } = await collector();
  const telemetry = await startTelemetry({ ...options, otlpEndpoint: url });
  const address = await app();
  await fetch(`${address}/things/planted?token=planted`, {
    headers: {
      traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
      "x-request-id": "abc-1",
      authorization: "Bearer planted",
    },
  });
  await fetch(`${address}/away`);
  await expect.poll(() => metricsAt(telemetry.metricsPort)).toContain('http_route="/away"');
  await telemetry.stop();
  const [request] = spans.filter((span) => span.name === "GET /things/:id");
  const [inner] = spans.filter((span) => span.name === "inner");
  expect(request).toMatchObject({
    traceId: "0af7651916cd43dd8448eb211c80319c",
    parentSpanId: "b7ad6b7169203331",
    kind: 2,
  });
  expect(inner).toMatchObject({ traceId: request?.traceId, parentSpanId: request?.spanId, kind: 4 });
  expect(request?.attributes).toEqual([
    { key: "http.request.method", value: { stringValue: "GET" } },
    { key: "http.route", value: { stringValue: "/things/:id" } },
    { key: "http.response.status_code", value: { intValue: 200 } },
    { key: "url.scheme", value: { stringValue: "http" } },
    { key: "herald.request_id", value: { stringValue: "abc-1" } },
  ]);
  expect(spans.find((span) => span.name === "GET /away")?.status.code).toBe(2);
  expect(JSON.stringify(spans)).not.toContain("planted");
});

test("without a collector a trace is still carried on, with the caller's decision", async () => {
  await start();
  const address = await app();
  const call = async (headers: Record<string, string>) => {
    const response = await fetch(`${address}/things/1`, { headers });
    return ((await response.json()) as { carrier: { traceparent: string } }).carrier.traceparent;
  };
  const id = "0af7651916cd43dd8448eb211c80319c";
  expect(await call({ traceparent: `00-${id}-b7ad6b7169203331-01` })).toMatch(new RegExp(`^00-${id}-[0-9a-f]{16}-01$`));
  expect(await call({ traceparent: `00-${id}-b7ad6b7169203331-00` })).toMatch(new RegExp(`^00-${id}-[0-9a-f]{16}-00$`));
  expect(await call({})).toMatch(/^00-[0-9a-f]{32}-[0-9a-f]{16}-00$/);
  expect(await call({ traceparent: "nonsense" })).toMatch(/^00-[0-9a-f]{32}-[0-9a-f]{16}-00$/);
});

test("the SDK's variables add to the resource and say who samples", async () => {
  const { spans, resources, url } = await collector();
  vi.stubEnv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=staging,service.version=9.9.9");
  vi.stubEnv("OTEL_TRACES_SAMPLER", "parentbased_traceidratio");
  vi.stubEnv("OTEL_TRACES_SAMPLER_ARG", "0");
  const telemetry = await startTelemetry({ ...options, otlpEndpoint: url });
  const address = await app();
  await fetch(`${address}/things/1`);
  await fetch(`${address}/away`, {
    headers: { traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01" },
  });
  await expect.poll(() => metricsAt(telemetry.metricsPort)).toContain('http_route="/away"');
  await telemetry.stop();
  expect(spans.map(({ name }) => name)).toEqual(["GET /away"]);
  expect(Object.fromEntries(resources.map(({ key, value }) => [key, value.stringValue]))).toEqual({
    "service.name": "herald-test",
    "service.version": "9.9.9",
    "deployment.environment.name": "staging",
    "telemetry.sdk.language": "nodejs",
    "telemetry.sdk.name": "opentelemetry",
    "telemetry.sdk.version": expect.any(String),
  });
});

test("metrics leave the process where that is asked for, and logs do not unasked, and /metrics stays", async () => {
  const quiet = await collector();
  const untold = await startTelemetry({ ...options, otlpEndpoint: quiet.url });
  await inSpan("one", {}, () => undefined);
  await untold.stop();
  expect([...quiet.paths]).toEqual(["/v1/traces"]);
  const asked = await collector();
  vi.stubEnv("OTEL_METRICS_EXPORTER", "otlp");
  vi.stubEnv("OTEL_TRACES_EXPORTER", "none");
  const telemetry = await startTelemetry({ ...options, otlpEndpoint: asked.url });
  await inSpan("one", {}, () => undefined);
  expect(await metricsAt(telemetry.metricsPort)).toContain("process_uptime_seconds");
  await telemetry.stop();
  expect([...asked.paths]).toEqual(["/v1/metrics"]);
});

test("OTEL_SDK_DISABLED leaves no spans and no metrics", async () => {
  vi.stubEnv("OTEL_SDK_DISABLED", "true");
  const { paths, url } = await collector();
  const telemetry = await startTelemetry({ ...options, otlpEndpoint: url });
  const recording = await inSpan("one", {}, (span) => span.isRecording());
  const text = await metricsAt(telemetry.metricsPort);
  await telemetry.stop();
  expect({ recording, paths: [...paths], series: text.match(/^\w+/gm) }).toEqual({
    recording: false,
    paths: [],
    series: null,
  });
});

test("a span that throws is marked with the kind of error, not with its words", async () => {
  const { spans, url } = await collector();
  const telemetry = await startTelemetry({ ...options, otlpEndpoint: url });
  await expect(
    inSpan("fails", {}, () => {
      throw new HeraldError("topic-not-found", "planted");
    }),
  ).rejects.toThrow("planted");
  await telemetry.stop();
  const [span] = spans;
  expect(span).toMatchObject({ name: "fails", status: { code: 2 } });
  expect(span?.attributes).toContainEqual({ key: "error.type", value: { stringValue: "topic-not-found" } });
  expect(JSON.stringify(spans)).not.toContain("planted");
});

test("services that share a process share the providers, until the last one stops", async () => {
  const one = await start();
  const two = await start();
  meter().createCounter("shared").add(1);
  expect(await metricsAt(one.metricsPort)).toContain("shared_total");
  await one.stop();
  expect(await metricsAt(two.metricsPort)).toContain("shared_total");
  cleanups.length = 0;
  await two.stop();
  expect(trace.getTracerProvider().getTracer("x").startSpan("x").spanContext().traceId).toMatch(/^0+$/);
  const again = await start();
  expect(await metricsAt(again.metricsPort)).not.toContain("shared_total");
});

test("a metrics port that is taken is an error that leaves nothing behind", async () => {
  const { metricsPort } = await start();
  await expect(startTelemetry({ ...options, metricsPort })).rejects.toThrow(/set HERALD_METRICS_PORT to/);
  expect(await metricsAt(metricsPort)).toContain("process_uptime");
});

test("a collector that is unavailable holds up no stop", async () => {
  const telemetry = await startTelemetry({ ...options, otlpEndpoint: "http://127.0.0.1:9" });
  await inSpan("lost", {}, () => undefined);
  await telemetry.stop();
});

test("the request id reaches what is started under it, and nothing else", async () => {
  const seen = withRequestId("a", () => new Promise((resolve) => setImmediate(() => resolve(currentRequestId()))));
  expect(await seen).toBe("a");
  expect(currentRequestId()).toBeUndefined();
});
