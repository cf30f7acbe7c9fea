import { until } from "./until.ts";

/** Stands in for a provider; `control` counts what it accepted. */
export type Sink = { readonly url: string; readonly ca: string; readonly control: string; readonly pid: number };

/** A sink's counts since the last reset; times are milliseconds since 1970. */
export type Counted = {
  readonly pushes: number;
  readonly firstAt: number;
  readonly lastAt: number;
  /** Arrival times of marked pushes, by their title: "mark " and a unique text. */
  readonly marked: Readonly<Record<string, number>>;
};

/** A sink searches titles only in bodies larger than this, because the search costs more than all its other work. */
export const markedFrom = 600;

export const countedBy = async ({ control }: Sink): Promise<Counted> =>
  (await (await fetch(control)).json()) as Counted;

/** Waits until the sink has accepted `pushes` pushes. */
export const pushed = (sink: Sink, pushes: number, everyMs?: number): Promise<Counted> =>
  until(
    `${pushes} pushes at the sink`,
    async () => {
      const counted = await countedBy(sink);
      return counted.pushes >= pushes ? counted : undefined;
    },
    everyMs,
  );

export const resetSink = async ({ control }: Sink): Promise<void> => {
  await fetch(control, { method: "DELETE" });
};

/** Sets the delay of every answer. */
export const delaySink = async ({ control }: Sink, delayMs: number): Promise<void> => {
  await fetch(control, { method: "PUT", body: JSON.stringify({ delayMs }) });
};
