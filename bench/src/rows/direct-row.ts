import { besideFloor } from "../floors.ts";
import type { System } from "../herald.ts";
import type { Row } from "../row.ts";
import { costLines, type DirectFigure, sendLines } from "../send-lines.ts";
import { type Singles, sendThroughFloor, sendThroughHerald, warmUpHerald } from "../sends.ts";
import { delaySink } from "../sinks.ts";

/** The devices get the notifications in turn. */
const devices = 1_000;
/** Services run for weeks: V8 still compiles during the first thousands of sends. */
export const warmUp = 5_000;
const latencyMs = 50;

const kinds = {
  device: { target: (_: number, id: string) => `device:${id}`, figure: "direct" },
  user: { target: (index: number) => `user:u${index}`, figure: "direct-user" },
  metadata: { target: (index: number) => `metadata:user_id=u${index}`, figure: "direct-metadata" },
} as const;
type Kind = keyof typeof kinds;

/** Stores new devices and returns a target for each. With `user` each device has its own user. */
export const seedTargets = async (system: System, kind: Kind = "device"): Promise<string[]> => {
  const ids = await system.seed("apns", "each-alone", devices, (index) => {
    if (kind === "user") return { user: { by: "project", userId: `u${index}` } };
    return kind === "metadata" ? { metadata: { user_id: `u${index}` } } : {};
  });
  return ids.map((id, index) => kinds[kind].target(index, id));
};

const directTo = (kind: Kind): Row => ({
  name: kinds[kind].figure,
  about: `single sends to \`${kind}:\` targets of one device each, without and with an Idempotency-Key on every POST`,
  async *measure(context) {
    const { system, sinks, runs, singles: count } = context;
    const sink = sinks.apns;
    const targets = await seedTargets(system, kind);
    const plain: Singles[] = [];
    const keyed: Singles[] = [];
    const floors: Singles[] = [];
    await besideFloor(sink, async (floor) => {
      const first = { count: Math.min(warmUp, count), targets };
      await sendThroughFloor(floor, sink, first);
      await warmUpHerald(system, { ...first, keys: true });
      await warmUpHerald(system, first);
      const load = { count, targets };
      for (let run = 0; run < runs; run++) {
        floors.push(await sendThroughFloor(floor, sink, load));
        plain.push(await sendThroughHerald(system, sink, load));
        keyed.push(await sendThroughHerald(system, sink, { ...load, keys: true }));
      }
    });
    const title = `Sends to one device each: one \`${kind}:\` target`;
    const { figure } = kinds[kind];
    const lines = (singles: readonly Singles[], name: DirectFigure) =>
      sendLines({ singles, floors, peer: context.peer, work: "singles", figure: name });
    yield { title, lines: lines(plain, figure) };
    yield { title: `${title}, with a key`, lines: lines(keyed, `${figure}-keyed`) };
  },
});

/** Single sends, beside the floor, to each kind of target that matches few devices. */
export const directRows: readonly Row[] = [directTo("device"), directTo("user"), directTo("metadata")];

/** Single sends to a slow provider: a slow answer must not delay other pushes. */
export const slowDirectRow: Row = {
  name: "direct-50ms",
  about: `single sends to \`device:\` targets of one project, to a provider that takes ${latencyMs} ms and to one that does not`,
  async *measure({ system, sinks, runs, singles: count }) {
    const sink = sinks.apns;
    const targets = await seedTargets(system);
    const quick: number[] = [];
    const slow: Singles[] = [];
    await warmUpHerald(system, { count: Math.min(warmUp, count), targets });
    try {
      for (let run = 0; run < runs; run++) {
        await delaySink(sink, 0);
        quick.push((await sendThroughHerald(system, sink, { count, targets })).perSecond);
        await delaySink(sink, latencyMs);
        slow.push(await sendThroughHerald(system, sink, { count, targets }));
      }
    } finally {
      await delaySink(sink, 0);
    }
    const rates = slow.map(({ perSecond }) => perSecond);
    yield {
      title: `Single sends that do more, beside plain ones: APNs takes ${latencyMs} ms`,
      lines: [
        { label: "sends/s", values: rates },
        { label: "plain/s", values: quick },
        {
          label: "ratio to plain",
          values: rates.map((rate, run) => rate / (quick[run] ?? 1)),
          digits: 2,
          figure: "direct-50ms-ratio",
        },
        ...costLines(slow.map(({ cost }) => cost)),
      ],
    };
  },
};
