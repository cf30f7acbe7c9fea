import { type Cost, costOf, type Measured } from "./cost.ts";
import type { SendFloor } from "./floors.ts";
import type { System } from "./herald.ts";
import type { Answered } from "./load.ts";
import { resultOf } from "./processes.ts";
import { countedBy, pushed, resetSink, type Sink } from "./sinks.ts";
import { until } from "./until.ts";

export type SendLoad = {
  readonly gateway: string;
  readonly token: string;
  /** The number of notifications; a multiple of `batchOf`. */
  readonly count: number;
  /** Requests a second. Absent: as fast as they are answered. */
  readonly pace?: number;
  /** Used in turn, one for each notification. */
  readonly targets: readonly string[];
  /** Whether each request has its own Idempotency-Key. */
  readonly keys?: boolean;
  /** Notifications per request to `POST /notifications/batch`. Absent: one request for each notification. */
  readonly batchOf?: number;
  /** Each request is one notification with `batchOf` recipients, each with a value of its own, instead of as many notifications. */
  readonly recipients?: boolean;
  /** The kind of each notification; absent: none. */
  readonly kind?: string;
  /** Each request is a new state of an activity instead of a notification; `targets` are ids of activities. */
  readonly activities?: boolean;
  /** A published template whose text shows the variable `n`. Absent: each notification has its own text. */
  readonly template?: string;
};

/** A poll costs gateway and analytics as much as a send. This interval keeps it invisible in their CPU. */
const pollMs = 250;

/** Sends notifications and waits until each request is accepted. Throws if one is not. */
export const sends = async (load: SendLoad): Promise<Answered> => {
  const answered = await resultOf<Answered>("bench/src/send-load.ts", [JSON.stringify(load)]);
  const requests = load.count / (load.batchOf ?? 1);
  if (answered.statuses["202"] !== requests)
    throw new Error(`${requests} sends were answered ${JSON.stringify(answered.statuses)}: all must be accepted`);
  return answered;
};

/** Runs `work`, which sends `pushes` pushes, and waits until the statistics count all of them: then no work is left. */
export const settled = async <T>(system: System, pushes: number, work: () => Promise<T>): Promise<T> => {
  const before = await system.sent();
  const result = await work();
  const all = async () => (await system.sent()) >= before + pushes || undefined;
  await until(`${pushes} pushes in the statistics`, all, pollMs);
  return result;
};

/** Runs `work` while services are paused with SIGSTOP. */
export const without = async <T>(
  { processes }: System,
  names: readonly string[],
  work: () => Promise<T>,
): Promise<T> => {
  const pids = names.flatMap((name) => processes[name] ?? []);
  for (const pid of pids) process.kill(pid, "SIGSTOP");
  try {
    return await work();
  } finally {
    for (const pid of pids) process.kill(pid, "SIGCONT");
  }
};

/** The result of notifications to one device each, measured from the first POST to the last push. */
export type Singles = {
  readonly perSecond: number;
  /** Of every process, including load and sink. */
  readonly cost: Cost;
};

/** Sends, waits until each notification is pushed and `settle` resolves, then checks that each was pushed once. */
const sendSingles = async (
  of: Measured,
  sink: Sink,
  load: SendLoad,
  settle: (work: () => Promise<void>) => Promise<void>,
): Promise<Singles> => {
  await resetSink(sink);
  const { count } = load;
  let perSecond = 0;
  let loadMicros = 0;
  const withSink = { ...of, processes: { ...of.processes, sink: sink.pid } };
  const cost = await costOf(withSink, count, () =>
    settle(async () => {
      const { beganAt, cpuMicros } = await sends(load);
      loadMicros = cpuMicros;
      perSecond = count / (((await pushed(sink, count)).lastAt - beganAt) / 1000);
    }),
  );
  const { pushes } = await countedBy(sink);
  if (pushes !== count) throw new Error(`${count} sends, ${pushes} pushes: each must be pushed once`);
  return { perSecond, cost: { ...cost, load: loadMicros / count } };
};

type Singly = Omit<SendLoad, "gateway" | "token">;

const toHerald = ({ gateway, project }: System, load: Singly): SendLoad => ({ ...load, gateway, token: project.token });

/** Sends through Herald, and measures until all follow-up work is done. */
export const sendThroughHerald = (system: System, sink: Sink, load: Singly): Promise<Singles> =>
  sendSingles(system, sink, toHerald(system, load), (work) => settled(system, load.count, work));

/** Sends through Herald without measuring, so that the code is compiled before a measurement. */
export const warmUpHerald = async (system: System, load: Singly): Promise<void> => {
  await settled(system, load.count, () => sends(toHerald(system, load)));
};

/** Sends through the floor, which does nothing after the push. */
export const sendThroughFloor = ({ gateway, ...floor }: SendFloor, sink: Sink, load: Singly): Promise<Singles> =>
  sendSingles(floor, sink, { ...load, gateway, token: "" }, (work) => work());
