import { useEffect, useState } from "react";
import { texts } from "../texts/common.ts";

const whole = new Intl.NumberFormat("en");
const dateTime = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium", timeStyle: "medium" });

export const count = (value: number): string => whole.format(value);

export const percent = (rate: number | null | undefined): string =>
  rate === null || rate === undefined ? "–" : `${(rate * 100).toFixed(rate > 0 && rate < 0.1 ? 1 : 0)} %`;

const steps: readonly (readonly [seconds: number, unit: string])[] = [
  [86_400, "d"],
  [3_600, "h"],
  [60, "min"],
  [1, "s"],
];

/** A length of time in its largest unit: `5 min`. */
export const duration = (seconds: number): string => {
  if (seconds > 0 && seconds < 1) return `${seconds.toFixed(1)} s`;
  const [size, unit] = steps.find(([step]) => seconds >= step) ?? [1, "s"];
  return `${Math.round(seconds / size)} ${unit}`;
};

const useNow = (everyMs: number): number => {
  const [now, setNow] = useState(Date.now);
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), everyMs);
    return () => clearInterval(timer);
  }, [everyMs]);
  return now;
};

/** A moment as people say it; its exact time is in the title. */
export const Time = ({ at }: { readonly at: string | undefined }) => {
  const now = useNow(10_000);
  if (at === undefined) return <span className="muted">{texts.common.never}</span>;
  const seconds = (now - Date.parse(at)) / 1_000;
  const words = seconds >= 0 ? texts.common.ago(duration(seconds)) : texts.common.inTime(duration(-seconds));
  return (
    <time dateTime={at} title={dateTime.format(new Date(at))} className="nowrap">
      {words}
    </time>
  );
};

export const exactTime = (at: string): string => dateTime.format(new Date(at));

const tones: Readonly<Record<string, string>> = {
  completed: "good",
  accepted: "good",
  active: "good",
  delivered: "good",
  enabled: "good",
  current: "good",
  ready: "good",
  ok: "good",
  opened: "open",
  scheduled: "open",
  sending: "open",
  pending: "open",
  waiting: "open",
  deferred: "open",
  next: "open",
  failed: "bad",
  disabled: "bad",
  gone: "bad",
  failing: "bad",
  unready: "bad",
  paused: "warn",
  held: "warn",
  unknown: "warn",
};

/** A state by its own word, which is never said by colour alone. */
export const Status = ({ value }: { readonly value: string }) => (
  <span className={`status ${tones[value] ?? "muted"}`}>{value.replaceAll(/[_-]/g, " ")}</span>
);

export const platformNames: Readonly<Record<string, string>> = { ios: "iOS", android: "Android", web: "Web" };
