import type { Waves } from "../domain/waves.ts";
import type { Expanded, NotificationState } from "./notification-document.ts";
import { checkAfter, type Transition } from "./notification-steps.ts";

/**
 * The changes of a notification that is sent in waves: `scheduled` → `accepted` → `expanding` → `scheduled` for the next one, until the last
 * leads to `delivering`. The number of the wave is in each filter: a late message of an earlier wave changes nothing.
 */
type InWaves = Pick<NotificationState, "changedAt"> & { readonly waves: Waves };

const absent = { $exists: false } as const;

/** `scheduled` → `accepted`: the wave begins. Of several callers one makes it, and none after a change of the notification's time. */
export const toWaveAccepted = ({ waves: { n }, changedAt }: InWaves, list: Waves["list"]): Transition => ({
  filter: { step: "scheduled", "waves.n": n, changedAt: changedAt ?? absent },
  update: {
    $set: { step: "accepted", "waves.list": list, ...(n === 0 && { status: "accepted" }) },
    $unset: { nextAt: "" },
  },
});

/** `accepted` → `expanding`, after the expansion of wave `n` was commanded. */
export const toWaveExpanding = (n: number, now: Date): Transition => ({
  filter: { step: "accepted", "waves.n": n },
  update: { $set: { step: "expanding", nextAt: checkAfter(now) } },
});

type Done = { readonly list: Waves["list"]; readonly expanded: Expanded };

/** To `scheduled` for the next wave, or to `delivering` after the last one, a stop or a lost expansion. `next`: the next wave. */
export const toWaveExpanded = (known: NotificationState & InWaves, { list, expanded }: Done, now: Date) => {
  const { step, stop } = known;
  const { n } = known.waves;
  const isLost = step === "delivering";
  const next = stop || isLost ? undefined : list[n + 1];
  const transition: Transition = {
    filter: {
      "waves.n": n,
      "stop.kind": stop?.kind ?? absent,
      ...(isLost ? { step, "expanded.lost": { $exists: true } } : { step: { $in: ["accepted", "expanding"] } }),
    },
    update: {
      $set: {
        "waves.list": list,
        expanded,
        ...(next
          ? { step: "scheduled", "waves.n": n + 1, nextAt: next.at }
          : { step: "delivering", nextAt: checkAfter(now) }),
        ...(stop?.kind !== "cancelled" && { status: "sending" }),
      },
    },
  };
  return { next, transition };
};

/** `scheduled` → `delivering`: the other waves do not take place. `cancelled`: because of a cancel. */
export const toLastWave = ({ waves: { n, list } }: InWaves, now: Date, cancelled: boolean): Transition => ({
  filter: { step: "scheduled", "waves.n": n },
  update: {
    $set: {
      step: "delivering",
      "waves.list": list.slice(0, n),
      nextAt: checkAfter(now),
      ...(cancelled && { status: "cancelled" as const, stop: { kind: "cancelled" as const, at: now } }),
    },
  },
});
