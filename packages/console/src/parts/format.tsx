import type { Notification } from "@herald/client";
import { Badge } from "@mantine/core";
import { useEffect, useState } from "react";

const whole = new Intl.NumberFormat("en");
const dateTime = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium", timeStyle: "medium" });

export const count = (value: number): string => whole.format(value);

export const percent = (rate: number | null | undefined): string =>
  rate === null || rate === undefined ? "–" : `${(rate * 100).toFixed(rate > 0 && rate < 0.1 ? 1 : 0)} %`;

const byteUnits = ["B", "KiB", "MiB", "GiB", "TiB"] as const;

/** In its largest unit: `1.5 MiB`. */
export const bytes = (value: number): string => {
  const power = Math.min(byteUnits.length - 1, Math.floor(Math.log2(Math.max(1, value)) / 10));
  const scaled = value / 1_024 ** power;
  return `${Number.isInteger(scaled) ? scaled : scaled.toFixed(1)} ${byteUnits[power]}`;
};

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

/** A time in words; the exact time is in the title. */
export const Time = ({ at }: { readonly at: string | undefined }) => {
  const now = useNow(10_000);
  if (at === undefined) return <span className="muted">never</span>;
  const seconds = (now - Date.parse(at)) / 1_000;
  const words = seconds >= 0 ? `${duration(seconds)} ago` : `in ${duration(-seconds)}`;
  return (
    <time dateTime={at} title={exactTime(at)} className="nowrap">
      {words}
    </time>
  );
};

export const exactTime = (at: string | undefined): string | undefined => at && dateTime.format(new Date(at));

/** A sentence of the API: its times are formatted for people, and text between backticks as code. */
export const Sentence = ({ text }: { readonly text: string }) =>
  text.split(/(`[^`]+`|\d{4}-\d\d-\d\dT[\d:.]+Z)/).map((part, index) => {
    if (index % 2 === 0) return part;
    // biome-ignore lint/suspicious/noArrayIndexKey: the parts of a sentence do not move
    return part.startsWith("`") ? <code key={index}>{part.slice(1, -1)}</code> : exactTime(part);
  });

/** The statuses of each colour. */
const tones = {
  good: ["completed", "accepted", "received", "active", "delivered", "enabled", "current", "ready", "ok"],
  open: ["opened", "scheduled", "sending", "pending", "waiting", "deferred", "delayed", "next"],
  bad: ["failed", "disabled", "gone", "failing", "not_ready", "not_answering", "unreachable"],
  warn: ["paused", "proposed", "blocked", "unknown"],
};

type StatusProps = {
  readonly value: string;
  readonly counts?: Pick<Notification["counts"], "accepted" | "devices" | "skipped"> | undefined;
};

const toneOf = (status: string): string =>
  Object.entries(tones).find(([, statuses]) => statuses.includes(status))?.[0] ?? "muted";

/**
 * A status as text with a colour. Colour alone would not be accessible. `counts`: of a notification, which is not good when it completed
 * without a device that accepted it.
 */
export const Status = ({ value, counts }: StatusProps) => {
  const isVain = value === "completed" && counts?.accepted === 0;
  const tone = isVain ? (counts.devices > counts.skipped ? "warn" : "muted") : toneOf(value);
  return <Badge color={`var(--${tone})`}>{value.replaceAll(/[_-]/g, " ")}</Badge>;
};

export const platformNames: Readonly<Record<string, string>> = { ios: "iOS", android: "Android", web: "Web" };

/** What a notification of a Live Activity does, which has no title of its own. */
export const activityName = ({ activity }: Pick<Notification, "activity">): string | undefined =>
  activity && `${activity.id}: ${activity.event}${activity.version === undefined ? "" : ` ${activity.version}`}`;

/** What people call a notification. */
export const notificationName = (notification: Pick<Notification, "title" | "body" | "activity">): string =>
  notification.title ?? notification.body ?? activityName(notification) ?? "(silent)";
