import { until } from "./until.ts";

/** Stands in for a provider; `control` counts what it accepted. */
export type Sink = { readonly url: string; readonly ca: string; readonly control: string; readonly pid: number };

/** What a sink counted since the last reset; times are milliseconds since 1970. */
export type Counted = {
  readonly pushes: number;
  readonly firstAt: number;
  readonly lastAt: number;
  /** When a marked push came, by its title: "mark " and what tells it from others. */
  readonly marked: Readonly<Record<string, number>>;
};

/** A sink looks for titles only in bodies larger than this, because looking costs more than all else that it does. */
export const markedFrom = 600;

export const countedBy = async ({ control }: Sink): Promise<Counted> =>
  (await (await fetch(control)).json()) as Counted;

/** Waits until so many pushes were accepted. */
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

/** How long every answer takes from now on. */
export const delaySink = async ({ control }: Sink, delayMs: number): Promise<void> => {
  await fetch(control, { method: "PUT", body: JSON.stringify({ delayMs }) });
};
