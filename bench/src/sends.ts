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
  /** Notifications; of whole batches where they go in batches. */
  readonly count: number;
  /** Requests a second; absent: as fast as they are answered. */
  readonly pace?: number;
  /** One of them after the other, each for one notification. */
  readonly targets: readonly string[];
  /** Each request under an Idempotency-Key of its own. */
  readonly keys?: boolean;
  /** Notifications in one request to `POST /notifications/batch`; absent: a request for each. */
  readonly batchOf?: number;
};

/** Asking costs gateway and analytics what a send does: seldom enough not to be seen in their CPU. */
const pollMs = 250;

/** Sends notifications and waits until each request is accepted. Throws where one is not. */
export const sends = async (load: SendLoad): Promise<Answered> => {
  const answered = await resultOf<Answered>("bench/src/send-load.ts", [JSON.stringify(load)]);
  const requests = load.count / (load.batchOf ?? 1);
  if (answered.statuses["202"] !== requests)
    throw new Error(`${requests} sends were answered ${JSON.stringify(answered.statuses)}: all must be accepted`);
  return answered;
};

/** Does what sends so many pushes of the bench's project, and waits until its statistics have all of them: nothing is left to do. */
export const settled = async <T>(system: System, pushes: number, work: () => Promise<T>): Promise<T> => {
  const before = await system.sent();
  const result = await work();
  const all = async () => (await system.sent()) >= before + pushes || undefined;
  await until(`${pushes} pushes in the statistics`, all, pollMs);
  return result;
};

/** Does something while services stand still. */
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

/** Notifications to one device each, from the first POST to the last push. */
export type Singles = {
  readonly perSecond: number;
  /** Of every process that takes part, the load and the sink among them. */
  readonly cost: Cost;
};

/** Sends them and waits until each is pushed and all that `settle` waits for is done, then checks that each was pushed once. */
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

/** Through Herald, until nothing is left to do. */
export const sendThroughHerald = (system: System, sink: Sink, load: Singly): Promise<Singles> =>
  sendSingles(system, sink, toHerald(system, load), (work) => settled(system, load.count, work));

/** The same without measuring: what is measured after it is compiled by then. */
export const warmUpHerald = async (system: System, load: Singly): Promise<void> => {
  await settled(system, load.count, () => sends(toHerald(system, load)));
};

/** Through the floor, which does nothing after the push. */
export const sendThroughFloor = ({ gateway, ...floor }: SendFloor, sink: Sink, load: Singly): Promise<Singles> =>
  sendSingles(floor, sink, { ...load, gateway, token: "" }, (work) => work());
