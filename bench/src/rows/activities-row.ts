import { type Broadcast, broadcast, largeSend, linesOfEach } from "../broadcast.ts";
import { partLines, sumOf } from "../cost.ts";
import type { System } from "../herald.ts";
import type { Context, Row } from "../row.ts";
import { type Singles, sendThroughHerald, warmUpHerald } from "../sends.ts";
import { percentile } from "../table.ts";
import { latencies, samples } from "./latency-row.ts";

/** A project may have a thousand, and each a version a second: a run writes one of each. */
const most = 700;
const type = "OrderAttributes";

/** A token that no other device of the bench has. */
let tokens = 0;
const newToken = (): string => `ac${(++tokens).toString(16).padStart(62, "0")}`;

type Made = { readonly ids: readonly string[]; readonly devices: readonly string[] };

/** Activities on one device each, whose app has started them. */
const makeActivities = async ({ herald, seed }: System, name: string, count: number): Promise<Made> => {
  const ids = Array.from({ length: count }, (_, index) => `${name}-${index}`);
  const devices = await seed("apns", name, count, (index) => ({
    further: { key: `activity/${ids[index]}`, token: newToken() },
  }));
  for (const [index, device] of devices.entries())
    await herald.activities.start(ids[index] ?? "", {
      ...{
        attributes_type: type,
        attributes: {},
        content_state: { n: 0 },
        start: false,
        targets: [`device:${device}`],
      },
    });
  return { ids, devices };
};

const singlesOf = async ({ system, sinks, runs, singles }: Context) => {
  const sink = sinks.apns;
  const count = Math.min(singles, most);
  const { ids, devices } = await makeActivities(system, "singles", count);
  const ofActivities = { ...system, sent: system.sentOfActivities };
  const sends = { count, targets: devices.map((id) => `device:${id}`) };
  const states = { count, targets: ids, activities: true };
  await warmUpHerald(system, sends);
  await warmUpHerald(ofActivities, states);
  const [plain, updates]: [Singles[], Singles[]] = [[], []];
  for (let run = 0; run < runs; run++) {
    plain.push(await sendThroughHerald(system, sink, sends));
    updates.push(await sendThroughHerald(ofActivities, sink, states));
  }
  for (const id of ids) await system.herald.activities.end(id);
  return { plain, updates };
};

const latencyOf = async ({ system, sinks, runs }: Context) => {
  const { ids, devices } = await makeActivities(system, "latency", samples);
  const [post, patch]: [number[], number[]] = [[], []];
  let next = 0;
  const notification = { title: "Hello", body: "World", ttl: 3600 };
  for (let run = 0; run <= runs; run++) {
    const to = () => next++ % samples;
    const sent = await latencies(sinks.apns, samples, () =>
      system.post({ ...notification, targets: [`device:${devices[to()]}`] }),
    );
    const updated = await latencies(sinks.apns, samples, () =>
      system.herald.activities.update(ids[to()] ?? "", { content_state: { n: next } }),
    );
    // The first run warms up.
    if (run === 0) continue;
    post.push(percentile(sent, 50));
    patch.push(percentile(updated, 50));
  }
  for (const id of ids) await system.herald.activities.end(id);
  return { post, patch };
};

const broadcastOf = async (context: Context) => {
  const { system, sinks, runs, sizes } = context;
  const devices = sizes.at(-1) ?? 0;
  const [topic, id] = ["activity-crowd", "broadcast"];
  await system.seed("apns", topic, devices, () => ({ further: { key: `activity/${id}`, token: newToken() } }));
  // Its state for those that have it already.
  await largeSend(system, sinks.apns, devices, async () => {
    const { notification_id } = await system.herald.activities.start(id, {
      ...{ attributes_type: type, attributes: {}, content_state: { n: 0 }, start: false, targets: [`topic:${topic}`] },
    });
    return notification_id;
  });
  await broadcast(system, sinks.apns, topic, devices);
  const [plain, updates]: [Broadcast[], Broadcast[]] = [[], []];
  for (let run = 0; run < runs; run++) {
    plain.push(await broadcast(system, sinks.apns, topic, devices));
    const update = async () =>
      (await system.herald.activities.update(id, { content_state: { n: run + 1 } })).notification_id;
    updates.push(await largeSend(system, sinks.apns, devices, update));
  }
  return { devices, plain, updates };
};

const pushes = (broadcasts: readonly Broadcast[]) => broadcasts.map(({ pushesPerSecond }) => pushesPerSecond);
const speeds = (singles: readonly Singles[]) => singles.map(({ perSecond }) => perSecond);
const linesOfCosts = (singles: readonly Singles[]) =>
  partLines(
    singles.map(({ cost }) => cost),
    "µs",
  );

const ratios = (above: readonly number[], below: readonly number[]) =>
  above.map((value, run) => value / (below[run] ?? 1));

export const activitiesRow: Row = {
  name: "activities",
  about: "new states of Live Activities, beside plain sends: one at a time, on one device each, on a topic's devices",
  async *measure(context) {
    const { post, patch } = await latencyOf(context);
    yield {
      title: "From POST to push, at rest: PATCH of a Live Activity",
      lines: [
        { label: "p50 ms", values: patch },
        { label: "plain, p50 ms", values: post },
        { label: "ratio to plain", values: ratios(patch, post), digits: 2, figure: "activities-latency" },
      ],
    };
    const { plain, updates } = await singlesOf(context);
    yield {
      title: "Single sends that do more, beside plain ones: states of Live Activities",
      lines: [
        { label: "sends/s", values: speeds(updates) },
        { label: "plain/s", values: speeds(plain) },
        {
          label: "ratio to plain",
          values: ratios(speeds(updates), speeds(plain)),
          digits: 2,
          figure: "activities-singles",
        },
        { label: "CPU of all, µs", values: updates.map(({ cost }) => sumOf(cost)) },
        { label: "CPU of plain, µs", values: plain.map(({ cost }) => sumOf(cost)) },
        ...linesOfCosts(updates),
      ],
    };
    const large = await broadcastOf(context);
    yield {
      title: `Large sends that do more, beside plain ones: a state of a Live Activity on ${large.devices}`,
      lines: [
        { label: "pushes/s", values: pushes(large.updates) },
        { label: "plain/s", values: pushes(large.plain) },
        {
          label: "ratio to plain",
          values: ratios(pushes(large.updates), pushes(large.plain)),
          digits: 2,
          figure: "activities-broadcast",
        },
        { label: "CPU of all, µs", values: large.updates.map(({ cost }) => sumOf(cost)) },
        { label: "CPU of plain, µs", values: large.plain.map(({ cost }) => sumOf(cost)) },
        ...linesOfEach(large.updates),
      ],
    };
  },
};
