import { type Broadcast, broadcast, largeSend, linesOfEach } from "../broadcast.ts";
import type { Row } from "../row.ts";
import { costLines } from "../send-lines.ts";
import { type Singles, sendThroughHerald, warmUpHerald } from "../sends.ts";
import { warmUp } from "./direct-row.ts";

const hourMs = 3_600_000;
/** One device in ten does not want the kind. */
const mutedEvery = 10;
const idsAtOnce = 1_000;
/** More than a user gets in a run: every send takes a slot, and none is refused. */
const cap = { count: 50, per: "week" } as const;
const users = 1_000;

const clockAt = (at: number): string =>
  new Date(at).toISOString().slice("2030-01-31T".length, "2030-01-31T09:00".length);

/** A kind with a cap, in a project with quiet hours that have ended: the rules are evaluated for every device, and none waits. */
export const rulesRow: Row = {
  name: "rules",
  about:
    "a send with a cap, quiet hours and a tenth muted to the last of --devices, and capped single sends, each beside plain ones",
  async *measure({ system, sinks, runs, sizes, singles: count }) {
    const sink = sinks.apns;
    const devices = sizes.at(-1) ?? 0;
    const sender = await system.anotherProject("rules");
    const withRules = { ...system, ...sender };
    const declare = (kind: string) =>
      system.admin.kinds.put(sender.project.id, kind, { title: kind, frequency_cap: cap });
    const [from, to] = [clockAt(Date.now() - 3 * hourMs), clockAt(Date.now() - 2 * hourMs)];
    await system.admin.projects.update(sender.project.id, { quiet_hours: { from, to, mode: "delay" } });
    // Each run has a kind of its own: its first send is the first of the window to each user.
    const kinds = Array.from({ length: runs }, (_, run) => `offers-${run}`);
    for (const kind of kinds) await declare(kind);

    const describe = (index: number) => ({ user: { by: "project", userId: `rules-${index}` } }) as const;
    await system.seed("apns", "plain", devices, describe);
    const ids = await sender.seed("apns", "ruled", devices, describe);
    const muted = ids.filter((_, at) => at % mutedEvery === 0);
    const collection = system.database("registry").collection<{ _id: string }>("devices");
    for (let at = 0; at < muted.length; at += idsAtOnce)
      await collection.updateMany(
        { _id: { $in: muted.slice(at, at + idsAtOnce) } },
        { $set: { preferences: `,${kinds.map((kind) => `-${kind}`).join(",")},` } },
      );
    const reached = devices - muted.length;
    const offer = (kind: string) => async () =>
      (
        await sender.herald.notifications.send({
          ...{ title: "Hello", body: "World", kind, targets: ["topic:ruled"], ttl: 3_600 },
        })
      ).id;
    const plain: Broadcast[] = [];
    const ruled: Broadcast[] = [];
    const second: Broadcast[] = [];
    for (const kind of kinds) {
      plain.push(await broadcast({ ...system, profiler: undefined }, sink, "plain", devices));
      ruled.push(await largeSend(withRules, sink, reached, offer(kind)));
      second.push(await largeSend({ ...withRules, profiler: undefined }, sink, reached, offer(kind)));
    }
    const rateOf = (one: Broadcast): number => (one.pushesPerSecond * devices) / reached;
    const ratioOf = (one: Broadcast, run: number): number => rateOf(one) / (plain[run]?.pushesPerSecond ?? 1);
    yield {
      title: `Large sends that do more, beside plain ones: with a cap, quiet hours and ${muted.length} of ${devices} muted`,
      lines: [
        { label: "pushes/s", values: ruled.map(rateOf) },
        { label: "plain/s", values: plain.map((one) => one.pushesPerSecond) },
        {
          label: "ratio to plain",
          values: ruled.map(ratioOf),
          digits: 2,
          figure: "rules-broadcast",
        },
        { label: "CPU of Herald, µs", values: ruled.map((one) => one.ownCpu) },
        { label: "CPU of plain, µs", values: plain.map((one) => one.ownCpu) },
        ...linesOfEach(ruled),
      ],
    };
    yield {
      title: "Large sends that do more, beside plain ones: the second such send in the window of the cap",
      lines: [{ label: "ratio to plain", values: second.map(ratioOf), digits: 2 }],
    };

    const few = Math.min(users, devices);
    // Of users who want it, in both projects.
    const targets = Array.from({ length: devices }, (_, at) => at)
      .filter((at) => at % mutedEvery !== 0)
      .slice(0, few)
      .map((at) => `user:rules-${at}`);
    // No user reaches the cap in a run.
    const capped = Math.min(count, targets.length * cap.count);
    const load = { count: capped, targets };
    await declare("warm-up");
    await warmUpHerald(system, { ...load, count: Math.min(warmUp, capped) });
    await warmUpHerald(withRules, { ...load, count: Math.min(warmUp, capped), kind: "warm-up" });
    const free: Singles[] = [];
    const held: Singles[] = [];
    for (let run = 0; run < runs; run++) {
      const kind = `alone-${run}`;
      await declare(kind);
      free.push(await sendThroughHerald(system, sink, load));
      held.push(await sendThroughHerald(withRules, sink, { ...load, kind }));
    }
    yield {
      title: "Single sends that do more, beside plain ones: one `user:` target, of a kind with a cap",
      lines: [
        { label: "sends/s", values: held.map((one) => one.perSecond) },
        { label: "plain/s", values: free.map((one) => one.perSecond) },
        {
          label: "ratio to plain",
          values: held.map((one, run) => one.perSecond / (free[run]?.perSecond ?? 1)),
          digits: 2,
          figure: "rules-singles",
        },
        ...costLines(held.map(({ cost }) => cost)),
      ],
    };
  },
};
