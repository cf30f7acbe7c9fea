import type { Stats, StatsQuery } from "@herald/client";
import type { Command } from "commander";
import { type Add, option } from "../define.ts";
import { plot } from "../terminal/plot.ts";
import type { Terminal } from "../terminal/terminal.ts";
import { count } from "../terminal/text.ts";

const height = 5;
const plainWidth = 80;

/** `01-31 09:00`, or the day where each interval is one. */
const label = (at: string, interval: string): string =>
  interval === "day" ? at.slice(0, 10) : at.slice(5, 16).replace("T", " ");

export const statsInWords = ({ series, totals, interval, time_zone, from, to }: Stats, terminal: Terminal): string => {
  const { paint } = terminal;
  const width = Number.isFinite(terminal.width) ? terminal.width : plainWidth;
  const ends = [label(series[0]?.at ?? from, interval), label(series.at(-1)?.at ?? to, interval)] as const;
  const rate = totals.open_rate === null ? "" : ` (${Math.round(totals.open_rate * 100)} %)`;
  const parts = (["sent", "failed", "opened"] as const).flatMap((name) => {
    const title = paint("bold", `${name} ${count(totals[name])}${name === "opened" ? rate : ""}`);
    if (totals[name] === 0) return [title];
    const lines = plot(
      series.map((interval) => interval[name]),
      { width, height, ends },
    );
    return ["", title, ...lines.map((line) => paint(name === "failed" ? "red" : "cyan", line))];
  });
  const reasons = Object.entries(totals.failures).map(([reason, devices]) => `  ${count(devices)} ${reason}`);
  return [`By ${interval}, ${time_zone}`, ...parts, ...reasons].join("\n");
};

export const addStats = (program: Command, add: Add) =>
  add<StatsQuery & { timeZone?: string }>(program, {
    usage: "stats",
    does: "Plot sent, failed and opened (default: the last 24 hours)",
    options: [
      option("--from <time>", "start, such as 2030-01-31T09:00:00Z"),
      option("--to <time>", "end (default: now)"),
      option("--interval <interval>", "hour or day").choices(["hour", "day"]),
      option("--time-zone <zone>", "where days begin, such as Europe/Berlin"),
      option("--notification <id>", "of one notification"),
      option("--topic <name>", "of notifications that named this topic"),
      option("--user <id>", "of notifications that named this user"),
      option("--platform <platform>", "of one platform").choices(["ios", "android", "web"]),
    ],
    examples: [["stats --from 2030-01-01T00:00:00Z --interval day --topic news", "one topic, by day"]],
    run: async ({ herald, signal, result, terminal }, _, { timeZone, ...query }) => {
      const stats = await herald().stats({ ...query, time_zone: timeZone }, { signal });
      result(stats, () => statsInWords(stats, terminal));
    },
  });
