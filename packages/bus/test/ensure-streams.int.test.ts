import { ensureStreams } from "@herald/bus";
import { buckets, durables, streams } from "@herald/contracts";
import { eventually } from "@herald/testing";
import { AckPolicy, type StreamConfig } from "@nats-io/jetstream";
import { nanos } from "@nats-io/transport-node";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type BusTest, startBusTest } from "./fixture.ts";
import { onEmptyBroker } from "./nats-login.ts";

let t: BusTest;
beforeAll(async () => {
  t = await startBusTest();
});
afterAll(() => t.stop());

const options = { replicas: 1, sizeFactor: 0.01 } as const;
const everything = [
  ...Object.keys(streams),
  ...Object.keys(buckets).map((name) => `KV_${name}`),
  ...Object.keys(durables),
];
const clean = { created: [], updated: [], problems: [] };

describe("ensureStreams", () => {
  test("creates everything that is declared, and changes nothing the second time", async () => {
    await onEmptyBroker("bootstrap", t.log, async (bus) => {
      expect(await ensureStreams(bus, options)).toEqual({
        created: everything,
        updated: [],
        unchanged: [],
        problems: [],
      });
      expect(await ensureStreams(bus, options)).toEqual({ ...clean, unchanged: everything });
    });
  });

  test("may run twice at the same time", async () => {
    await onEmptyBroker("bootstrap", t.log, async (bus) => {
      const reports = await Promise.all([ensureStreams(bus, options), ensureStreams(bus, options)]);
      expect(reports.flatMap(({ problems }) => problems)).toEqual([]);
      expect(await ensureStreams(bus, options)).toEqual({ ...clean, unchanged: everything });
    });
  });

  test("updates changed settings and keeps the messages", async () => {
    const { config } = await t.raw.jsm.streams.info("PUSH_DLQ");
    await t.raw.jsm.streams.update("PUSH_DLQ", { ...config, max_age: nanos(600_000), allow_direct: false });
    const consumer = await t.raw.jsm.consumers.info("PUSH_CMD", "dispatch-start");
    await t.raw.jsm.consumers.update("PUSH_CMD", "dispatch-start", {
      ...consumer.config,
      ack_wait: nanos(1_000),
      max_ack_pending: 5,
    });
    await t.raw.nc.request("push.dlq.v1.kept", "{}");
    const report = await ensureStreams(t.bus, options);
    expect(report).toMatchObject({ created: [], updated: ["PUSH_DLQ", "dispatch-start"], problems: [] });
    expect((await t.raw.jsm.streams.info("PUSH_DLQ")).state.messages).toBe(1);
    expect((await t.raw.jsm.consumers.info("PUSH_CMD", "dispatch-start")).config).toMatchObject({
      ack_wait: nanos(durables["dispatch-start"].ackWaitMs),
      max_ack_pending: durables["dispatch-start"].maxAckPending,
    });
  });

  test("reports settings that it cannot change, and changes the others", async () => {
    await t.raw.jsm.streams.delete("PUSH_EVENTS");
    const subjects: Partial<StreamConfig> = { subjects: ["push.evt.v1.>"], max_age: nanos(1_000) };
    // A broker that has just deleted a stream may fail on its old files when it recreates the stream.
    await eventually(() => t.raw.jsm.streams.add({ name: "PUSH_EVENTS", ...subjects, storage: "memory" }));
    const report = await ensureStreams(t.bus, options);
    expect(report.problems).toEqual([expect.stringMatching(/^PUSH_EVENTS: storage is "memory", declared is "file": /)]);
    expect(report.updated).toContain("PUSH_EVENTS");
    expect((await t.raw.jsm.streams.info("PUSH_EVENTS")).config.max_age).toBe(nanos(streams.PUSH_EVENTS.maxAgeMs));
    await t.raw.jsm.streams.delete("PUSH_EVENTS");
    await eventually(() => ensureStreams(t.bus, options));
  });

  test("reports a renamed durable: its filter overlaps, and it is not declared", async () => {
    await t.raw.jsm.consumers.delete("PUSH_CMD", "dispatch-start");
    const filterSubject = durables["dispatch-start"].filters[0];
    await t.raw.jsm.consumers.add("PUSH_CMD", {
      durable_name: "dispatch-begin",
      ack_policy: AckPolicy.Explicit,
      filter_subject: filterSubject,
    });
    const { problems } = await ensureStreams(t.bus, options);
    expect(problems).toEqual([
      expect.stringMatching(/^dispatch-start: not created: .*not unique on workqueue/),
      expect.stringMatching(/^dispatch-begin: a durable of PUSH_CMD that is not declared/),
    ]);
    await t.raw.jsm.consumers.delete("PUSH_CMD", "dispatch-begin");
    expect(await ensureStreams(t.bus, options)).toMatchObject({ created: ["dispatch-start"], problems: [] });
  });

  test("reports a backoff, which replaces the ack wait", async () => {
    const { config } = await t.raw.jsm.consumers.info("PUSH_CMD", "dispatch-start");
    await t.raw.jsm.consumers.update("PUSH_CMD", "dispatch-start", {
      ...config,
      max_deliver: 5,
      backoff: [nanos(500), nanos(1_000)],
    });
    const { problems } = await ensureStreams(t.bus, options);
    expect(problems.join("\n")).toContain("backoff");
    await t.raw.jsm.consumers.delete("PUSH_CMD", "dispatch-start");
    expect(await ensureStreams(t.bus, options)).toMatchObject({ created: ["dispatch-start"], problems: [] });
  });
});
