import { type Cost, partLines, services, sumOf } from "./cost.ts";
import { besidePeer, type Peer, type PeerWork } from "./peer.ts";
import type { Singles } from "./sends.ts";
import type { Line } from "./table.ts";

export type DirectFigure = `direct${"" | "-user" | "-metadata"}${"" | "-keyed"}`;

type Sent = {
  /** Results by run, through Herald and through the floor. */
  readonly singles: readonly Singles[];
  readonly floors: readonly Singles[];
  readonly peer: Peer | undefined;
  readonly work: PeerWork;
  readonly figure: DirectFigure | "batch";
};

/** CPU per send of each process, including load and sink. */
export const costLines = (costs: readonly Cost[]): Line[] => [
  { label: "CPU of Herald, µs", values: costs.map((cost) => sumOf(cost, services)) },
  ...partLines(costs, "µs"),
];

/** Sends to one device each, beside the floor and the peer of the same run. */
export const sendLines = ({ singles, floors, peer, work, figure }: Sent): Line[] => {
  const rates = singles.map(({ perSecond }) => perSecond);
  const costs = singles.map(({ cost }) => cost);
  // The floor is the same program in every row, so goals and the plot read it from one row.
  const floorFigure = <Name extends string>(name: Name) => (figure === "direct" ? { figure: name } : {});
  return [
    { label: "sends/s", values: rates, figure },
    { label: "floor/s", values: floors.map(({ perSecond }) => perSecond), ...floorFigure("send-floor") },
    {
      label: "ratio to floor",
      values: rates.map((rate, run) => rate / (floors[run]?.perSecond ?? 1)),
      digits: 2,
    },
    ...besidePeer(peer, work, rates),
    { label: "CPU of all, µs", values: costs.map((cost) => sumOf(cost)), figure: `${figure}-cpu` },
    {
      label: "CPU of floor, µs",
      values: floors.map(({ cost }) => sumOf(cost)),
      ...floorFigure("send-floor-cpu"),
    },
    ...costLines(costs),
  ];
};
