import {
  closeBus,
  connectBus,
  consume,
  currentOrigin,
  defineBatchHandler,
  defineHandler,
  groupedPublishEvents,
  handleRequest,
  measureQueues,
  type Positions,
  publish,
  schedule,
  sendRequest,
} from "@herald/bus";
import { DueV1, durables, ExpandV1, NotificationCancelledV1, openRequests, SendV1, streams } from "@herald/contracts";
import { currentRequestId, HeraldError, inSpan, withRequestId } from "@herald/kit";
import { eventually } from "@herald/testing";
import { jetstream } from "@nats-io/jetstream";
import { context, metrics, propagation, SpanKind, trace } from "@opentelemetry/api";
import { AsyncLocalStorageContextManager } from "@opentelemetry/context-async-hooks";
import { W3CTraceContextPropagator } from "@opentelemetry/core";
import {
  AggregationTemporality,
  InMemoryMetricExporter,
  MeterProvider,
  PeriodicExportingMetricReader,
} from "@opentelemetry/sdk-metrics";
import { InMemorySpanExporter, SimpleSpanProcessor, TracerProvider } from "@opentelemetry/sdk-trace";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { type BusTest, expandOf, messagesIn, newProject, readStream, sendOf, startBusTest } from "./fixture.ts";
import { connectAs } from "./nats-login.ts";
import { publishInBatch } from "./send-fixture.ts";

const exporter = new InMemorySpanExporter();
const metricExporter = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE);
const reader = new PeriodicExportingMetricReader({ exporter: metricExporter, exportIntervalMillis: 3_600_000 });
const tracerProvider = new TracerProvider({ spanProcessors: [new SimpleSpanProcessor({ exporter })] });
const meterProvider = new MeterProvider({ readers: [reader] });

let t: BusTest;
beforeAll(async () => {
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
  propagation.setGlobalPropagator(new W3CTraceContextPropagator());
  trace.setGlobalTracerProvider(tracerProvider);
  metrics.setGlobalMeterProvider(meterProvider);
  t = await startBusTest();
});
afterEach(async () => {
  await t.reset();
  exporter.reset();
});
afterAll(async () => {
  await t.stop();
  await Promise.all([tracerProvider.shutdown(), meterProvider.shutdown()]);
  for (const api of [trace, metrics, propagation, context]) api.disable();
});

const spanNamed = (name: string) => {
  const span = exporter.getFinishedSpans().find((one) => one.name === name);
  if (span === undefined) throw new Error(`no span ${name} in: ${exporter.getFinishedSpans().map((one) => one.name)}`);
  return span;
};

test("one trace and one request id span the HTTP request, two messages and a bus request", async () => {
  const ids: (string | undefined)[] = [];
  const answering = handleRequest(t.bus, openRequests.count, async () => {
    ids.push(currentRequestId());
    return { counts: {} };
  });
  await t.handle(
    defineHandler({
      durable: "dispatch-start",
      message: SendV1,
      async handle({ data }) {
        ids.push(currentRequestId());
        await publish(t.bus, ExpandV1, expandOf(data.projectId), { id: data.notificationId });
      },
    }),
    defineHandler({
      durable: "registry-expand",
      message: ExpandV1,
      async handle({ data }) {
        ids.push(currentRequestId());
        await sendRequest(t.bus, openRequests.count, {
          projectId: data.projectId,
          notificationIds: [data.notificationId],
        });
      },
    }),
  );
  const data = sendOf();
  await withRequestId("request-7", () =>
    inSpan("POST /notifications", { kind: "server" }, () => publish(t.bus, SendV1, data, { id: data.notificationId })),
  );
  const settled = () => t.logged.filter(({ msg }) => msg === "message settled");
  // Two handlers: either may end first.
  const last = await eventually(() => {
    expect(settled()).toHaveLength(2);
    spanNamed(`process ${SendV1.pattern}`);
    return spanNamed(`process ${ExpandV1.pattern}`);
  });
  await answering.stop();

  const first = spanNamed("POST /notifications");
  const chain = [
    ["publish push.cmd.v1.dispatch.send.:projectId.:notificationId", SpanKind.PRODUCER, first],
    [
      "process push.cmd.v1.dispatch.send.:projectId.:notificationId",
      SpanKind.CONSUMER,
      "publish push.cmd.v1.dispatch.send.:projectId.:notificationId",
    ],
    [`publish ${ExpandV1.pattern}`, SpanKind.PRODUCER, `process ${SendV1.pattern}`],
    [`process ${ExpandV1.pattern}`, SpanKind.CONSUMER, `publish ${ExpandV1.pattern}`],
    ["request analytics.opens.count", SpanKind.CLIENT, `process ${ExpandV1.pattern}`],
    ["handle analytics.opens.count", SpanKind.SERVER, "request analytics.opens.count"],
  ] as const;
  for (const [name, kind, parent] of chain) {
    const span = spanNamed(name);
    const above = typeof parent === "string" ? spanNamed(parent) : parent;
    expect(span.kind, name).toBe(kind);
    expect(span.spanContext().traceId, name).toBe(first.spanContext().traceId);
    expect(span.parentSpanContext?.spanId, name).toBe(above.spanContext().spanId);
  }
  expect(last.links.map((link) => link.context.spanId)).toEqual([
    spanNamed(`publish ${ExpandV1.pattern}`).spanContext().spanId,
  ]);
  expect(spanNamed(`publish ${ExpandV1.pattern}`).attributes).toEqual({
    "messaging.system": "nats",
    "messaging.operation.name": "publish",
    "messaging.operation.type": "send",
    "messaging.destination.template": ExpandV1.pattern,
  });
  expect(last.attributes).toEqual({
    "messaging.system": "nats",
    "messaging.operation.name": "process",
    "messaging.operation.type": "process",
    "messaging.destination.template": ExpandV1.pattern,
    "messaging.consumer.group.name": "registry-expand",
    "messaging.batch.message_count": 1,
    "herald.outcome": "acked",
    "herald.holds": 0,
  });
  expect(ids).toEqual(["request-7", "request-7", "request-7"]);
  for (const line of settled())
    expect(line).toMatchObject({ requestId: "request-7", traceId: first.spanContext().traceId });
});

test("each message of a shared batch carries the request that it came from", async () => {
  const messages = ["request-a", "request-b"].map((requestId) =>
    withRequestId(requestId, () => {
      const data = sendOf();
      return { contract: SendV1, data, id: data.notificationId, origin: currentOrigin() };
    }),
  );
  await publishInBatch(t.bus, messages);
  const stored = await readStream(t, "PUSH_CMD");
  expect(stored.map(({ header }) => header.get("Herald-Request-Id"))).toEqual(["request-a", "request-b"]);
});

test("each event of a shared message links the trace that it came from", async () => {
  await t.handle(
    defineBatchHandler({
      durable: "analytics-events",
      message: NotificationCancelledV1,
      size: 10,
      waitMs: 0,
      async handle() {},
    }),
  );
  const projectId = newProject();
  const counts = { devices: 0, accepted: 0, failed: 0, expired: 0, cancelled: 0 };
  const publishGrouped = groupedPublishEvents(() => t.bus);
  await Promise.all(
    ["a", "b"].map((name) =>
      inSpan(`cancel ${name}`, { kind: "server" }, () => {
        const { notificationId } = sendOf();
        const data = { project_id: projectId, notification_id: notificationId, at: new Date().toISOString(), counts };
        return publishGrouped([
          { id: notificationId, event: "NotificationCancelledV1", subject: notificationId, at: new Date(), data },
        ]);
      }),
    ),
  );
  expect(await messagesIn(t, "PUSH_EVENTS")).toBe(1);
  expect(await value("herald.bus.events", { pattern: NotificationCancelledV1.pattern })).toBe(2);
  const process = await eventually(() => spanNamed(`process ${NotificationCancelledV1.pattern}`));
  const origins = ["a", "b"].map((name) => spanNamed(`cancel ${name}`).spanContext());
  expect(process.links.map((link) => link.context.spanId)).toEqual(origins.map(({ spanId }) => spanId));
  // The message belongs to neither request.
  const published = spanNamed(`publish ${NotificationCancelledV1.pattern}`);
  expect(published.parentSpanContext).toBeUndefined();
  for (const { traceId } of origins) expect(published.spanContext().traceId).not.toBe(traceId);
});

test("spans contain no id and no content", async () => {
  await t.handle(defineHandler({ durable: "dispatch-start", message: SendV1, async handle() {} }));
  const data = sendOf();
  await publish(t.bus, SendV1, data, { id: data.notificationId });
  await eventually(() => spanNamed(`process ${SendV1.pattern}`));
  const text = JSON.stringify(
    exporter.getFinishedSpans().map(({ name, attributes, events, status }) => ({ name, attributes, events, status })),
  );
  for (const secret of [data.projectId, data.notificationId, "Hello"]) expect(text).not.toContain(secret);
});

/** The value of a metric for these labels. */
const value = async (name: string, labels: Record<string, string>) => {
  metricExporter.reset();
  await meterProvider.forceFlush();
  const points = metricExporter
    .getMetrics()
    .flatMap(({ scopeMetrics }) => scopeMetrics.flatMap((scope) => scope.metrics))
    .filter(({ descriptor }) => descriptor.name === name)
    .flatMap(({ dataPoints }) => dataPoints as { attributes: Record<string, unknown>; value: unknown }[]);
  return points.find(({ attributes }) => Object.entries(labels).every(([key, label]) => attributes[key] === label))
    ?.value;
};

test("counts settled, waiting and published messages by low-cardinality labels", async () => {
  const bus = await connectBus({ url: t.broker.url, name: "metrics", log: t.log });
  let unavailable = true;
  const consuming = await consume(bus, [
    defineHandler({
      durable: "registry-expand",
      message: ExpandV1,
      async handle() {
        if (unavailable) throw new HeraldError("database-unavailable", "unavailable");
      },
    }),
  ]);
  const projectId = newProject();
  await publish(bus, ExpandV1, expandOf(projectId), { id: "waiting" });
  const durable = "registry-expand";
  await eventually(async () => expect(await value("herald.bus.waiting", { durable })).toBe(1));
  expect(await value("herald.bus.in_flight", { durable })).toBe(1);
  expect(await value("herald.bus.publish.seconds", { pattern: ExpandV1.pattern, outcome: "stored" })).toMatchObject({
    count: expect.any(Number),
  });
  const before = ((await value("herald.bus.settled", { durable, outcome: "acked" })) as number | undefined) ?? 0;
  unavailable = false;
  await eventually(async () =>
    expect(await value("herald.bus.settled", { durable, outcome: "acked" })).toBe(before + 1),
  );
  expect(await value("herald.bus.waiting", { durable })).toBe(0);
  expect(await value("herald.bus.in_flight", { durable })).toBe(0);
  expect(await value("herald.bus.process.seconds", { durable })).toMatchObject({ count: before + 1 });
  await consuming.stop(1_000);
  await closeBus(bus);
  expect(await messagesIn(t, "PUSH_CMD")).toBe(0);
});

describe("measuring queues", () => {
  const everyMs = 50;

  test("measures pending and unsettled messages, the size of a stream and the age of its oldest message", async () => {
    const measuring = measureQueues(t.bus, "dispatch", { everyMs });
    for (const data of [sendOf(), sendOf(), sendOf()]) await publish(t.bus, SendV1, data, { id: data.notificationId });
    const consumer = await jetstream(t.raw.nc).consumers.get("PUSH_CMD", "dispatch-start");
    const given = await consumer.next();
    const [durable, stream] = [{ durable: "dispatch-start" }, { stream: "PUSH_CMD" }];
    await eventually(async () => {
      expect(await value("herald.bus.pending", durable)).toBe(2);
      expect(await value("herald.bus.ack_pending", durable)).toBe(1);
      expect(await value("herald.bus.stream.messages", stream)).toBe(3);
    });
    const { config, state } = await t.raw.jsm.streams.info("PUSH_CMD");
    expect(await value("herald.bus.stream.bytes", stream)).toBe(state.bytes);
    expect(await value("herald.bus.stream.limit.bytes", stream)).toBe(config.max_bytes);
    await eventually(async () => expect(await value("herald.bus.oldest.seconds", stream)).toBeGreaterThan(0.2));
    given?.ack();
    await t.raw.jsm.streams.purge("PUSH_CMD");
    await eventually(async () => {
      expect(await value("herald.bus.oldest.seconds", stream)).toBe(0);
      expect(await value("herald.bus.pending", durable)).toBe(0);
    });
    // Dead letters are kept for a month, so their age means nothing.
    expect(await value("herald.bus.oldest.seconds", { stream: "PUSH_DLQ" })).toBeUndefined();
    await measuring.stop();
  });

  test("counts messages that were removed before their durable read them, but no replaced schedules", async () => {
    const project = newProject();
    const due: DueV1 = { kind: "batch", projectId: project, key: "measured", id: "a" };
    let replaced = 0;
    /** Replaces a schedule several times and waits until that is measured. */
    const replace = async () => {
      const at = new Date(Date.now() + 3_600_000);
      const one = { subject: "push.sched.v1.measured.1", at, contract: DueV1, data: due };
      for (let time = 0; time < 4; time++) await schedule(t.bus, { ...one, id: `measured-${replaced++}` });
      const { first_seq } = (await t.raw.jsm.streams.info("PUSH_SCHEDULE")).state;
      const told = () => value("herald.bus.stream.first.sequence", { stream: "PUSH_SCHEDULE" });
      await eventually(async () => expect(await told()).toBe(first_seq));
    };
    const happens = (id: string) => jetstream(t.raw.nc).publish(`push.evt.v1.${project}.device.deleted`, id);
    const had = new Map<string, number>();
    const positions: Positions = {
      advance: async (durable, position, { first }) => {
        const before = had.get(durable);
        had.set(durable, Math.max(before ?? 0, position, first - 1));
        return before === undefined ? 0 : Math.max(0, first - 1 - before);
      },
    };
    await happens("first");
    const measure = () => [
      measureQueues(t.bus, "dispatch", { everyMs, positions }),
      measureQueues(t.bus, "analytics", { everyMs, positions }),
    ];
    const stopped = (all: ReturnType<typeof measure>) => Promise.all(all.map((one) => one.stop()));
    const before = measure();
    // A measurement taken during one round has been compared by the end of the next.
    for (let round = 0; round < 3; round++) await replace();
    await eventually(() => expect(had.has("analytics-events")).toBe(true));
    // Between a measurement's look at the stream and its look at the durable, a removal is not seen as a loss.
    await stopped(before);
    for (const id of ["second", "third"]) await happens(id);
    await t.raw.jsm.streams.purge("PUSH_EVENTS", { keep: 1 });
    const after = measure();
    await eventually(async () => expect(await value("herald.bus.lost", { durable: "analytics-events" })).toBe(2));
    await stopped(after);
    expect(await value("herald.bus.lost", { durable: "dispatch-due" })).toBeUndefined();
    const losses = t.logged.filter(({ level }) => level === "error").map(({ stream }) => stream);
    expect(new Set(losses)).toEqual(new Set(["PUSH_EVENTS"]));
  });

  test("every durable and every stream is measured by one service, as its own user", async () => {
    const before = t.logged.length;
    for (const name of ["registry", "dispatch", "analytics"] as const) {
      const bus = await connectAs(t, name);
      const measuring = measureQueues(bus, name, { everyMs });
      const own = Object.keys(durables).filter((durable) => durable.startsWith(name));
      await eventually(async () => {
        for (const durable of own) expect(await value("herald.bus.ack_pending", { durable })).toBe(0);
      });
      await measuring.stop();
      await closeBus(bus);
    }
    for (const stream of Object.keys(streams))
      expect(await value("herald.bus.stream.limit.bytes", { stream })).toBeGreaterThan(0);
    expect(t.logged.slice(before).filter(({ level }) => level === "warn" || level === "error")).toEqual([]);
  });
});
