import type { Stats, StatsQuery } from "@herald/client";
import { knownValues } from "@herald/client/known-values";
import type { Command } from "commander";
import { type Add, labelFilter, option } from "../define.ts";
import { plot } from "../terminal/plot.ts";
import { columnsFor, createTable } from "../terminal/table.ts";
import type { Terminal } from "../terminal/terminal.ts";
import { formatNumber } from "../terminal/text.ts";

const height = 5;
const plainWidth = 80;

/** `01-31 09:00`, or the date if the interval is a day. */
const label = (at: string, interval: string): string =>
  interval === "day" ? at.slice(0, 10) : at.slice(5, 16).replace("T", " ");

const percent = (rate: number | null): string | undefined =>
  rate === null ? undefined : `${Math.round(rate * 100)} %`;

type Group = NonNullable<Stats["groups"]>[number];
const groupColumns = columnsFor<Group>("value", "sent", "failed", "opened", {
  title: "RATE",
  value: ({ open_rate }) => percent(open_rate),
  right: true,
});

/** The totals of each value, and the sum of the values beyond the limit. */
const groupsInWords = ({ groups, other, limit_reached }: Stats, terminal: Terminal): string[] => {
  if (groups === undefined) return [];
  const rows = other ? [...groups, { value: `other: ${other.values.join(", ")}`, ...other }] : groups;
  return [
    "",
    ...(rows.length === 0 ? ["There are no groups."] : createTable(groupColumns, terminal)(rows)),
    ...(limit_reached ? ["It exceeds the monthly limit of labels and values."] : []),
  ];
};

export const statsInWords = (stats: Stats, terminal: Terminal): string => {
  const { series, totals, interval, time_zone, from, to } = stats;
  const { paint } = terminal;
  const width = Number.isFinite(terminal.width) ? terminal.width : plainWidth;
  const ends = [label(series[0]?.at ?? from, interval), label(series.at(-1)?.at ?? to, interval)] as const;
  const share = percent(totals.open_rate);
  const rate = share === undefined ? "" : ` (${share})`;
  const reasons = Object.entries(totals.failures).map(([reason, devices]) => `  ${formatNumber(devices)} ${reason}`);
  const parts = (["sent", "failed", "opened"] as const).flatMap((name) => {
    const title = paint("bold", `${name} ${formatNumber(totals[name])}${name === "opened" ? rate : ""}`);
    if (totals[name] === 0) return [title];
    const lines = plot(
      series.map((interval) => interval[name]),
      { width, height, ends },
    );
    const painted = lines.map((line) => paint(name === "failed" ? "red" : "cyan", line));
    return ["", title, ...painted, ...(name === "failed" ? reasons : [])];
  });
  const { receipts_asked: asked, received, dismissed } = totals;
  const receipts =
    asked + received + dismissed === 0
      ? []
      : [
          "",
          `received ${formatNumber(received)} of ${formatNumber(asked)} asked, dismissed ${formatNumber(dismissed)}`,
        ];
  return [`By ${interval}, ${time_zone}`, ...parts, ...receipts, ...groupsInWords(stats, terminal)].join("\n");
};

export const addStats = (program: Command, add: Add) =>
  add<StatsQuery & { timeZone?: string; pushType?: StatsQuery["push_type"] }>(program, {
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
      option("--kind <kind>", "of notifications of this kind"),
      option("--label <name=value>", "of notifications with this label"),
      option("--push-type <type>", "of notifications with this push type of Apple").choices(knownValues.pushType),
      option("--platform <platform>", "of one platform").choices(knownValues.platform),
      option("--by <dimension>", "totals by platform, kind, push_type, topic or label:<name>"),
    ],
    examples: [
      ["stats --from 2030-01-01T00:00:00Z --interval day --topic news", "one topic, by day"],
      ["stats --by label:campaign", "sent and opened by campaign"],
    ],
    run: async ({ herald, result, terminal }, _, { timeZone, pushType, label, ...query }) => {
      const asked = { ...query, label: label && labelFilter(label), time_zone: timeZone, push_type: pushType };
      await result(herald().stats(asked), (stats) => statsInWords(stats, terminal));
    },
  });
