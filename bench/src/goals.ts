import { type Figure, figureIn, type Table } from "./table.ts";

/** A target for a figure. `threshold` is the lowest acceptable value; `threshold` and `goal` have the unit of `reached`. */
export type Goal = {
  readonly work: string;
  readonly unit: string;
  readonly threshold: number;
  readonly goal: number;
  /** Whether smaller is better. */
  readonly atMost?: boolean;
  readonly digits?: number;
  /** Undefined when the run did not measure it. */
  readonly reached: (figure: (name: Figure) => number | undefined) => number | undefined;
};

type Read = Goal["reached"];

const value =
  (name: Figure): Read =>
  (figure) =>
    figure(name);

const ratio =
  (name: Figure, to: Figure): Read =>
  (figure) => {
    const [above, below] = [figure(name), figure(to)];
    return above === undefined || below === undefined ? undefined : above / below;
  };

const besidePeer = (work: string, name: Figure, peer: Figure, threshold: number, goal: number): Goal => ({
  work,
  unit: "× peer",
  threshold,
  goal,
  digits: 2,
  reached: ratio(name, peer),
});

const beside = (work: string, unit: string, name: Figure, threshold: number, goal: number): Goal => ({
  work,
  unit,
  threshold,
  goal,
  digits: 2,
  reached: value(name),
});

const atMost = (work: string, unit: string, name: Figure, threshold: number, goal: number): Goal => ({
  work,
  unit,
  threshold,
  goal,
  atMost: true,
  reached: value(name),
});

/** Web Push pushes a second before Herald had its own encryption, on two cores: the median of 2026-11-21. */
const earlierWebPush = 2_654;

/** All goals of the send path, single sends first: they are the main job. */
export const goals: readonly Goal[] = [
  ...(
    [
      ["direct", "`device:` target", 0.25, 0.5],
      ["direct-user", "`user:` target", 0.2, 0.45],
      ["direct-metadata", "`metadata:` target", 0.2, 0.45],
    ] as const
  ).flatMap(([name, target, threshold, goal]) => [
    besidePeer(`single sends to one ${target} each`, name, "peer-singles", threshold, goal),
    besidePeer(`… ${target}, with a key`, `${name}-keyed`, "peer-singles", threshold, goal),
  ]),
  besidePeer("100 different notifications a request", "batch", "peer-batches", 0.6, 1),
  // Two runs of the same work on a shared machine differ by up to 5 %.
  beside("single sends with 50 ms provider latency", "× without", "direct-50ms-ratio", 0.95, 1),
  atMost("CPU of a single send, all processes and the load", "µs", "direct-cpu", 1_200, 600),
  atMost("… with a key", "µs", "direct-keyed-cpu", 1_200, 600),
  atMost("idle, POST to push, p50", "ms", "latency-p50", 10, 5),
  atMost("idle, POST to push, p99", "ms", "latency-p99", 20, 10),
  atMost("a direct send beside 10,000 of another project that wait, p99", "ms", "neighbour-p99", 500, 100),
  atMost("accepted at 500/s while all are sent, p99", "ms", "accepted-p99", 60, 20),
  {
    work: "registrations, one by one",
    unit: "/s",
    threshold: 2_000,
    goal: 4_000,
    reached: value("registrations"),
  },
  {
    work: "… of devices that are known and unchanged",
    unit: "/s",
    threshold: 4_000,
    goal: 4_000,
    reached: value("registrations-unchanged"),
  },
  {
    work: "devices imported from a file",
    unit: "/s",
    threshold: 3_500,
    goal: 5_000,
    reached: value("imports"),
  },
  besidePeer("a topic's devices, pushes", "broadcast", "peer-broadcast", 1.5, 3),
  {
    work: "a topic's devices, CPU of Herald's services",
    unit: "× peer's",
    threshold: 0.5,
    goal: 0.25,
    atMost: true,
    digits: 2,
    reached: ratio("broadcast-own-cpu", "peer-broadcast-cpu"),
  },
  { work: "Web Push", unit: "/s", threshold: 3 * earlierWebPush, goal: 14_000, reached: value("webpush") },
  { work: "an export of devices, NDJSON", unit: "rows/s", threshold: 20_000, goal: 20_000, reached: value("exports") },
  atMost("idle resident memory, the largest service", "MB", "idle-memory", 100, 60),
  beside("an upload of recipients by `device:`, pushes", "× topic", "recipients-device", 0.5, 0.7),
  beside("… by `user:`", "× topic", "recipients-user", 0.5, 0.7),
  atMost("a direct send of another project beside an upload, p99", "ms", "recipients-p99", 500, 500),
  besidePeer("100 recipients a request", "recipients-inline", "peer-batches", 0.6, 1),
  beside("a topic's devices, each with values of its own", "× the same text", "device-values", 0.5, 0.8),
  beside("a topic's devices with a cap, quiet hours and a tenth muted", "× without", "rules-broadcast", 0.5, 0.7),
  beside("a capped single send by `user:`", "× without", "rules-singles", 0.7, 0.85),
  {
    ...atMost("a topic's devices in 40 time zones at a local time, CPU of all", "× at once", "waves-cpu", 1.2, 1.1),
    digits: 2,
  },
  beside("a single send from a template", "× plain", "template", 0.95, 1),
  beside("a topic's devices, asked for receipts that come in", "× without", "receipts-broadcast-ratio", 0.8, 1),
  { ...atMost("a state of an activity, PATCH to push, p50", "× a send", "activities-latency", 2, 1.5), digits: 2 },
  beside("new states of activities on one device each", "× single sends", "activities-singles", 0.3, 0.6),
  beside("a new state of an activity on a topic's devices", "× a send", "activities-broadcast", 0.8, 1),
  ...(
    [
      ["a direct send of its project beside it, p99", "direct"],
      ["an open of its project beside it until its event, p99", "opens"],
    ] as const
  ).map(([work, name]) => ({
    ...atMost(work, "× without", `receipts-${name}-ratio`, 2, 1),
    digits: 2,
  })),
];

/** The result of a run for a goal. */
export type GoalResult = {
  readonly reached?: number;
  readonly state: "goal reached" | "threshold reached" | "not reached" | "not measured";
};

export const evaluateGoal = (goal: Goal, tables: readonly Table[]): GoalResult => {
  const reached = goal.reached(figureIn(tables));
  if (reached === undefined) return { state: "not measured" };
  const beyond = (limit: number): number => (goal.atMost ? limit / reached : reached / limit);
  const state =
    beyond(goal.goal) >= 1 ? "goal reached" : beyond(goal.threshold) >= 1 ? "threshold reached" : "not reached";
  return { reached, state };
};
