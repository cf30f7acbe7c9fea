import type { NewRollout, Notification, PlannedRollout, RolloutState } from "@herald/client";
import { numberOption, option, parsePercent, percentOption, repeatable } from "../define.ts";
import { UsageError } from "../failures.ts";
import { formatNumber } from "../terminal/text.ts";

/** How a large send is rolled out. */
export type RolloutChoice = {
  readonly canary?: number;
  readonly canaryWait?: string;
  readonly perMinute?: number;
  readonly stopIf?: string[];
};

export const perMinuteOption = (description: string) => numberOption("--per-minute <devices>", description);

export const rolloutOptions = [
  percentOption("--canary <share>", "share of the audience that gets it first, such as 1% or 0.01"),
  option("--canary-wait <time>", "with --canary, how long the others wait, such as 30m or 2h (default: 10m)"),
  perMinuteOption("most devices to send to in a minute"),
  repeatable(
    "--stop-if <condition>",
    "failed=5%: pause when more devices failed; unregistered: these count; repeatable",
  ),
];

type StopIf = NonNullable<NewRollout["stop_if"]>;

/** The conditions of `--stop-if failed=5% --stop-if unregistered`. */
const parseStopIf = (conditions: readonly string[]): StopIf => {
  const parts = conditions.map((condition): Partial<StopIf> => {
    if (condition === "unregistered") return { unregistered: true };
    const [, share] = /^failed=(.*)$/.exec(condition) ?? [];
    const failed = share === undefined ? undefined : parsePercent(share);
    if (failed !== undefined) return { failed };
    throw new UsageError(`--stop-if ${condition}: must be failed=5%, or unregistered beside it.`);
  });
  const { failed, ...others } = Object.assign({}, ...parts) as Partial<StopIf>;
  if (failed === undefined) throw new UsageError("--stop-if unregistered needs --stop-if failed=<share>.");
  return { failed, ...others };
};

/** Undefined without any of its options. */
export const rolloutOfOptions = ({ canary, canaryWait, perMinute, stopIf }: RolloutChoice): NewRollout | undefined => {
  if (canaryWait !== undefined && canary === undefined) throw new UsageError("--canary-wait needs --canary <share>.");
  const rollout: NewRollout = {
    ...(canary !== undefined && { canary: { share: canary, ...(canaryWait !== undefined && { wait: canaryWait }) } }),
    ...(perMinute !== undefined && { per_minute: perMinute }),
    ...(stopIf && { stop_if: parseStopIf(stopIf) }),
  };
  return Object.keys(rollout).length > 0 ? rollout : undefined;
};

/** Whether a notification was paused by its rollout, not by a person or a program. */
export const stoppedByItself = ({ paused }: Pick<Notification, "paused">): boolean =>
  paused !== undefined && paused.by === undefined;

const percent = (share: number): string => `${Math.round(share * 10_000) / 100} %`;
const shareOf = (part: number, whole: number): string => percent(whole === 0 ? 0 : Math.min(1, part / whole));

const heldWords: Readonly<Record<string, string>> = {
  "provider-paused": "devices wait because their provider is paused",
  throttled: "devices are sent to more slowly than they are released",
  "few-outcomes": "fewer than 50 devices have an outcome to judge by",
};

const counted = (devices: number): string => `${formatNumber(devices)} device${devices === 1 ? "" : "s"}`;

const speedWords = ({ rate, per_minute: most }: RolloutState): string | undefined => {
  const parts = [
    rate === undefined ? [] : formatNumber(rate),
    most === undefined ? [] : `at most ${formatNumber(most)}`,
  ];
  const words = parts.flat().join(" of ");
  return words === "" ? undefined : `${words} a minute`;
};

/** A rollout as names and values. */
export const rolloutEntries = (rollout: RolloutState | undefined): [name: string, value: string | undefined][] => {
  if (!rollout) return [];
  const { phase, held, audience, released, canary, stop_if: stopIf, next_at: next, outcomes, failed } = rollout;
  const reach = audience === undefined ? "" : ` of about ${formatNumber(audience)} (${shareOf(released, audience)})`;
  const limit = stopIf && `, stops above ${percent(stopIf.failed)}${stopIf.unregistered ? " with unregistered" : ""}`;
  return [
    ["rollout", `${phase}: released ${counted(released)}${reach}`],
    ["held", held && (heldWords[held] ?? held)],
    ["canary", canary && `${percent(canary.share)}, the others after ${canary.wait ?? "10m"}`],
    ["speed", speedWords(rollout)],
    ["next part", next],
    ["outcomes", `${formatNumber(failed)} of ${counted(outcomes)} failed (${shareOf(failed, outcomes)})${limit ?? ""}`],
  ];
};

/** A rollout of a dry run as names and values. */
export const plannedEntries = ({
  canary_devices: canary,
  minutes,
}: Partial<PlannedRollout> = {}): [name: string, value: string | undefined][] => [
  ["canary", canary === undefined ? undefined : counted(canary)],
  ["rollout", minutes ? `at least ${formatNumber(minutes)} minute${minutes === 1 ? "" : "s"}` : undefined],
];

/** How far a rollout is, while it releases devices: the share of 1, and in words. */
export const rolloutProgress = (
  rollout: RolloutState | undefined,
  isWide: boolean,
): { share: number; words: string } | undefined => {
  if (!rollout?.audience || rollout.phase === "done") return undefined;
  const { phase, held, audience, released } = rollout;
  const share = Math.min(1, released / audience);
  if (!isWide) return { share, words: `${phase}: ${percent(share)}` };
  return { share, words: `${phase}${held ? `, ${held}` : ""}: ${percent(share)} of ${formatNumber(audience)}` };
};
