import type { StatusReport } from "@herald/contracts";
import { describe, expect, test } from "vitest";
import { type ReceivedReport, systemStatus } from "./system-status.ts";

const now = new Date("2030-01-01T12:00:00.000Z");
const ago = (seconds: number) => new Date(now.getTime() - seconds * 1_000);

const received = (
  service: StatusReport["service"],
  seconds: number,
  { instance = "host-1", ...rest }: Partial<StatusReport> = {},
): ReceivedReport => ({
  at: ago(seconds),
  report: {
    service,
    instance,
    version: "1.2.3",
    startedAt: ago(600).toISOString(),
    at: ago(seconds).toISOString(),
    failing: [],
    streams: [],
    durables: [],
    ...rest,
  },
});
const failing = [{ check: "database", since: ago(30).toISOString(), reason: "the database is unavailable" }];

const statesOf = (all: readonly ReceivedReport[]) =>
  Object.fromEntries(
    systemStatus(all, true, now).services.map(({ name, state, replicas }) => [
      name,
      [state, ...replicas.map((replica) => replica.state)],
    ]),
  );

describe("the services", () => {
  test("are all four, whether or not they report", () => {
    expect(statesOf([])).toEqual({
      gateway: ["not_answering"],
      registry: ["not_answering"],
      dispatch: ["not_answering"],
      analytics: ["not_answering"],
    });
  });

  test("are as good as their best replica, and each replica is listed by itself", () => {
    expect(
      statesOf([
        received("gateway", 1),
        received("registry", 1, { instance: "a" }),
        received("registry", 25, { instance: "b" }),
        received("dispatch", 1, { failing }),
        received("analytics", 21),
      ]),
    ).toEqual({
      gateway: ["ready", "ready"],
      registry: ["ready", "ready", "not_answering"],
      dispatch: ["not_ready", "not_ready"],
      analytics: ["not_answering", "not_answering"],
    });
  });

  test("say why they are not ready, and are forgotten ten minutes after their last report", () => {
    const { services } = systemStatus([received("dispatch", 1, { failing }), received("registry", 601)], true, now);
    expect(services.find(({ name }) => name === "dispatch")?.replicas[0]).toMatchObject({ version: "1.2.3", failing });
    expect(services.find(({ name }) => name === "registry")?.replicas).toEqual([]);
  });
});

test("each stream and durable is there once, as it was measured last; dead letters are those of their stream", () => {
  const stream = (messages: number, seconds: number) => ({
    name: "PUSH_DLQ",
    messages,
    bytes: 1,
    max_bytes: 100,
    measured_at: ago(seconds).toISOString(),
  });
  const durable = (pending: number, seconds: number) => ({
    name: "dispatch-start",
    pending,
    in_progress: 0,
    measured_at: ago(seconds).toISOString(),
  });
  const status = systemStatus(
    [
      received("dispatch", 1, { instance: "a", streams: [stream(7, 2)], durables: [durable(5, 2)] }),
      received("dispatch", 1, { instance: "b", streams: [stream(6, 9)], durables: [durable(4, 9)] }),
    ],
    true,
    now,
  );
  expect(status.streams).toEqual([stream(7, 2)]);
  expect(status.durables).toEqual([durable(5, 2)]);
  expect(status.dead_letters).toBe(7);
  expect(systemStatus([], true, now).dead_letters).toBeNull();
});

test("backlogs are those of dispatch's newest report", () => {
  const backlog = (sends: number) => ({
    project_id: "prj_06bq4ghm31tz5d2ns8y7k9w0ac" as const,
    sends,
    since: ago(60).toISOString(),
  });
  const reports = [
    received("dispatch", 5, { instance: "a", backlogs: [backlog(7)] }),
    received("dispatch", 1, { instance: "b", backlogs: [backlog(9)] }),
    received("registry", 0),
  ];
  expect(systemStatus(reports, true, now).backlogs).toEqual([backlog(9)]);
  expect(systemStatus([], true, now).backlogs).toEqual([]);
});

test("an unavailable broker is reported with the reason", () => {
  expect(systemStatus([], "NATS is unavailable", now).broker).toEqual({
    available: false,
    reason: "NATS is unavailable",
  });
});
