import { setTimeout as delay } from "node:timers/promises";
import type { NewRollout } from "@herald/client";
import { type Broadcast, broadcast, largeSend } from "../broadcast.ts";
import type { System } from "../herald.ts";
import { probe } from "../probe.ts";
import type { Row } from "../row.ts";
import { sends } from "../sends.ts";
import { countedBy, pushed, resetSink, type Sink } from "../sinks.ts";
import { percentile } from "../table.ts";
import { until } from "../until.ts";

/** The audience is released in as many parts, of ten seconds each. */
const parts = 4;
const lookMs = 100;

/** Pushes that had come by each look, until `pushes` have come. */
const arrivals = async (sink: Sink, pushes: number) => {
  const looks: { readonly at: number; readonly pushes: number }[] = [];
  await until(
    `${pushes} pushes at the sink`,
    async () => {
      looks.push({ at: Date.now(), pushes: (await countedBy(sink)).pushes });
      return looks.at(-1)?.pushes === pushes || undefined;
    },
    lookMs,
  );
  return looks;
};

/** The most pushes that came within any ten seconds. */
const maxInTenSeconds = (looks: Awaited<ReturnType<typeof arrivals>>): number =>
  Math.max(...looks.map(({ at, pushes }) => pushes - (looks.findLast((look) => look.at <= at - 10_000)?.pushes ?? 0)));

const notification = { title: "Hello", body: "World", targets: ["topic:released"], ttl: 3600 } as const;

export const rolloutRow: Row = {
  name: "rollout",
  about: "a send to the last of --devices that stops by itself if devices fail, beside a plain one, and one at a speed",
  async *measure({ system, sinks, runs, sizes }) {
    const sink = sinks.apns;
    const devices = sizes.at(-1) ?? 0;
    await system.seed("apns", "released", devices);
    const perMinute = (devices * 6) / parts;
    const [plain, watched, speeds]: [Broadcast[], Broadcast[], number[]] = [[], [], []];
    const send = async (rollout: NewRollout): Promise<string> =>
      (await system.herald.notifications.send({ ...notification, rollout })).id;
    for (let run = 0; run < runs; run++) {
      plain.push(await broadcast(system, sink, "released", devices));
      watched.push(await largeSend(system, sink, devices, () => send({ stop_if: { failed: 0.05 } })));
      await resetSink(sink);
      const id = await send({ per_minute: perMinute });
      speeds.push((maxInTenSeconds(await arrivals(sink, devices)) * 6) / perMinute);
      await until("the end of the rollout", async () => (await system.progress(id)).completed_at);
    }
    const rates = watched.map((one) => one.pushesPerSecond);
    yield {
      title: `Large sends that do more, beside plain ones: ${devices} devices, released in parts`,
      lines: [
        { label: "pushes/s with a limit of failures", values: rates },
        { label: "plain/s", values: plain.map((one) => one.pushesPerSecond) },
        {
          label: "ratio to plain",
          values: rates.map((rate, run) => rate / (plain[run]?.pushesPerSecond ?? 1)),
          digits: 2,
        },
        { label: `of ${perMinute} a minute, in the fastest ten seconds`, values: speeds, digits: 2 },
      ],
    };
  },
};

/** Projects that are paused, and the sends of each that wait. */
const pausedProjects = 100;
const waitingOfEach = 1_000;
const probes = 200;

const pausedBroadcast = async (system: System, sink: Sink, devices: number) => {
  await resetSink(sink);
  const id = await system.send("paused");
  await pushed(sink, Math.min(1_000, devices / 10), lookMs);
  await system.herald.notifications.pause(id);
  const pausedAt = Date.now();
  // What was in flight has come by then.
  await delay(2_000);
  const { lastAt, pushes } = await countedBy(sink);
  await system.herald.notifications.resume(id);
  const resumedAt = Date.now();
  await pushed(sink, pushes + 1, 10);
  const firstMs = Date.now() - resumedAt;
  await pushed(sink, devices);
  await until("the end of the send", async () => (await system.progress(id)).completed_at);
  return { lastMs: Math.max(0, lastAt - pausedAt), firstMs };
};

export const pausesRow: Row = {
  name: "pauses",
  about: `the last push after a pause, the first after a resume, and direct sends while ${pausedProjects} paused projects have ${waitingOfEach} waiting each`,
  async *measure({ system, sinks, runs, sizes }) {
    const sink = sinks.apns;
    const devices = sizes.at(-1) ?? 0;
    await system.seed("apns", "paused", devices);
    const paused: Awaited<ReturnType<typeof pausedBroadcast>>[] = [];
    for (let run = 0; run < runs; run++) paused.push(await pausedBroadcast(system, sink, devices));
    yield {
      title: `Pauses: a topic of ${devices}`,
      lines: [
        { label: "last push after the pause, ms", values: paused.map(({ lastMs }) => lastMs) },
        { label: "first push after the resume, ms", values: paused.map(({ firstMs }) => firstMs) },
      ],
    };

    const [device = ""] = await system.seed("apns", "alone", 1);
    const own = { sender: system, device, everyMs: 50 };
    const quiet = await probe(sink, own, (sent) => sent < probes);
    for (let index = 0; index < pausedProjects; index++) {
      const other = await system.anotherProject(`paused ${index}`);
      const [target = ""] = await other.seed("apns", "each", 1);
      await system.admin.projects.pause(other.project.id);
      await sends({
        ...{ gateway: system.gateway, token: other.project.token, count: waitingOfEach },
        ...{ targets: [`device:${target}`], batchOf: 100 },
      });
    }
    await resetSink(sink);
    const beside = await probe(sink, own, (sent) => sent < probes);
    const p = (times: readonly number[], percent: number) => [percentile(times, percent)];
    yield {
      title: `Direct sends beside other work: ${pausedProjects} paused projects with ${waitingOfEach} sends each`,
      lines: [
        { label: "p99 ms without", values: p(quiet, 99) },
        { label: "p50 ms with", values: p(beside, 50) },
        { label: "p99 ms with", values: p(beside, 99) },
      ],
    };
  },
};
