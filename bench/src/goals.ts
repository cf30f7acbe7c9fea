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
      ["direct", "`device:`", 0.25, 0.5],
      ["direct-user", "`user:`", 0.2, 0.45],
      ["direct-metadata", "`metadata:`", 0.2, 0.45],
    ] as const
  ).flatMap(([name, target, threshold, goal]) => [
    besidePeer(`single sends, ${target}`, name, "peer-singles", threshold, goal),
    besidePeer(`… ${target}, with a key`, `${name}-keyed`, "peer-singles", threshold, goal),
  ]),
  besidePeer("100 notifications a request", "batch", "peer-batches", 0.6, 1),
  // Two runs of the same work on a shared machine differ by up to 5 %.
  beside("single sends to APNs that takes 50 ms", "× plain", "direct-50ms-ratio", 0.95, 1),
  atMost("CPU of a single send", "µs", "direct-cpu", 1_200, 600),
  atMost("… with a key", "µs", "direct-keyed-cpu", 1_200, 600),
  atMost("POST to push at rest, p50", "ms", "latency-p50", 10, 5),
  atMost("POST to push at rest, p99", "ms", "latency-p99", 20, 10),
  atMost("beside 10,000 waiting sends of another project, p99", "ms", "neighbour-p99", 500, 100),
  atMost("accepted at 500/s, p99", "ms", "accepted-p99", 60, 20),
  {
    work: "new devices",
    unit: "/s",
    threshold: 2_000,
    goal: 4_000,
    reached: value("registrations"),
  },
  {
    work: "unchanged devices",
    unit: "/s",
    threshold: 4_000,
    goal: 4_000,
    reached: value("registrations-unchanged"),
  },
  {
    work: "imported devices",
    unit: "/s",
    threshold: 3_500,
    goal: 5_000,
    reached: value("imports"),
  },
  besidePeer("a large topic", "broadcast", "peer-broadcast", 1.5, 3),
  {
    work: "… CPU of Herald",
    unit: "× peer's",
    threshold: 0.5,
    goal: 0.25,
    atMost: true,
    digits: 2,
    reached: ratio("broadcast-own-cpu", "peer-broadcast-cpu"),
  },
  { work: "Web Push", unit: "/s", threshold: 3 * earlierWebPush, goal: 14_000, reached: value("webpush") },
  { work: "export, NDJSON", unit: "rows/s", threshold: 20_000, goal: 20_000, reached: value("exports") },
  atMost("idle memory of the largest service", "MB", "idle-memory", 100, 60),
  beside("an upload by `device:`", "× topic", "recipients-device", 0.5, 0.7),
  beside("an upload by `user:`", "× topic", "recipients-user", 0.5, 0.7),
  atMost("beside another project's upload, p99", "ms", "recipients-p99", 500, 500),
  besidePeer("100 recipients a request", "recipients-inline", "peer-batches", 0.6, 1),
  beside("values of each device in the text", "× plain", "device-values", 0.5, 0.8),
  beside("a large topic with a cap, quiet hours and a tenth muted", "× plain", "rules-broadcast", 0.5, 0.7),
  beside("a capped single send", "× plain", "rules-singles", 0.7, 0.85),
  {
    ...atMost("40 time zones at a local time, CPU", "× plain", "waves-cpu", 1.2, 1.1),
    digits: 2,
  },
  beside("a single send from a template", "× plain", "template", 0.95, 1),
  beside("a large topic with receipts", "× plain", "receipts-broadcast-ratio", 0.8, 1),
  { ...atMost("PATCH of an activity to push, p50", "× plain", "activities-latency", 2, 1.5), digits: 2 },
  beside("states of activities on one device each", "× plain", "activities-singles", 0.3, 0.6),
  beside("a state of an activity on a large topic", "× plain", "activities-broadcast", 0.8, 1),
  ...(
    [
      ["a direct send beside receipts, p99", "direct"],
      ["an open beside receipts, p99", "opens"],
    ] as const
  ).map(([work, name]) => ({
    ...atMost(work, "× without receipts", `receipts-${name}-ratio`, 2, 1),
    digits: 2,
  })),
];

/** The result of a run for a goal. */
export type GoalResult = {
  readonly reached?: number;
  readonly state: "goal" | "threshold" | "missed" | "not measured";
};

export const evaluateGoal = (goal: Goal, tables: readonly Table[]): GoalResult => {
  const reached = goal.reached(figureIn(tables));
  if (reached === undefined) return { state: "not measured" };
  const beyond = (limit: number): number => (goal.atMost ? limit / reached : reached / limit);
  const state = beyond(goal.goal) >= 1 ? "goal" : beyond(goal.threshold) >= 1 ? "threshold" : "missed";
  return { reached, state };
};
