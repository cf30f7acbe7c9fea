import type { DeclaredKind, KindDeclaration } from "@herald/client";
import type { Command } from "commander";
import type { ListChoice } from "../context.ts";
import { type Add, addDelete, listOptions, option } from "../define.ts";
import { UsageError } from "../failures.ts";
import { columnsFor, titled } from "../terminal/table.ts";

const capText = ({ frequency_cap: cap }: DeclaredKind): string => (cap ? `${cap.count} per ${cap.per}` : "none");

const hoursText = ({ quiet_hours: hours }: DeclaredKind): string => {
  if (hours === undefined) return "the project's";
  return hours === null ? "none" : `${hours.from} to ${hours.to}, ${hours.mode}`;
};

const columns = columnsFor<DeclaredKind>(
  "kind",
  "title",
  { title: "BY DEFAULT", value: ({ on_by_default: on, critical }) => (critical ? "critical" : on ? "on" : "off") },
  { title: "CAP", value: capText },
  { title: "QUIET HOURS", value: hoursText },
);

const entries = (kind: DeclaredKind): [string, unknown][] => [
  ...titled(kind, "kind", "title"),
  ["by default", kind.on_by_default ? "on" : "off"],
  ["critical", kind.critical ? "yes" : "no"],
  ["cap", capText(kind)],
  ["quiet hours", hoursText(kind)],
];

/** `22:00-07:00`, `22:00-07:00/skip`, or `none`. */
export const parseQuietHours = (text: string | undefined): KindDeclaration["quiet_hours"] => {
  if (text === undefined || text === "none") return text && null;
  const [, from = "", to = "", mode = "delay"] = /^(\d\d:\d\d)-(\d\d:\d\d)(?:\/(delay|skip))?$/.exec(text) ?? [];
  if (from === "")
    throw new UsageError(`--quiet-hours ${text}: must be none, or like 22:00-07:00 or 22:00-07:00/skip.`);
  return { from, to, mode: mode as "delay" | "skip" };
};

/** `2/day`. */
const parseCap = (text: string | undefined): KindDeclaration["frequency_cap"] => {
  if (text === undefined) return undefined;
  const [, count, per] = /^(\d{1,2})\/(hour|day|week)$/.exec(text) ?? [];
  if (per === undefined) throw new UsageError(`--cap ${text}: must be like 2/hour, 2/day or 2/week.`);
  return { count: Number(count), per: per as "hour" | "day" | "week" };
};

type Declaration = {
  readonly title: string;
  readonly off?: boolean;
  readonly critical?: boolean;
  readonly cap?: string;
  readonly quietHours?: string;
};

export const addKinds = (group: Command, add: Add) => {
  add<Declaration>(group, {
    usage: "put <kind>",
    does: "Declare a kind of notifications, or replace its declaration",
    options: [
      option("--title <title>", "what people read where they switch it off").makeOptionMandatory(),
      option("--off", "off until a person switches it on"),
      option("--critical", "people cannot switch it off, and no quiet hours or cap apply"),
      option("--cap <count/window>", "the most a person gets, such as 2/day; per hour, day or week"),
      option("--quiet-hours <hours>", "instead of the project's: 22:00-07:00, 22:00-07:00/skip or none"),
    ],
    examples: [["kind put offers --title Offers --cap 2/day", "a person gets at most two offers a day"]],
    run: ({ admin, project, record }, [kind = ""], { title, off = false, critical = false, cap, quietHours }) => {
      const declaration = { title, on_by_default: !off, critical, quiet_hours: parseQuietHours(quietHours) };
      const declared = admin().kinds.put(project(), kind, { ...declaration, frequency_cap: parseCap(cap) });
      return record(declared, entries);
    },
  });
  add<ListChoice>(group, {
    usage: "list",
    does: "List the kinds that the project has declared",
    options: listOptions,
    run: ({ admin, project, rows }, _, choice) => rows(admin().kinds.list(project()), columns, choice),
  });
  add(group, "get <kind>", "Show a kind", ({ admin, project, record }, [kind = ""]) =>
    record(admin().kinds.get(project(), kind), entries),
  );
  addDelete(group, add, {
    usage: "delete <kind>",
    does: "Delete a kind",
    question: (kind) => `Delete the kind ${kind}? Sends that name it then go to every device, any number of times.`,
    run: ({ admin, project }, kind) => admin().kinds.delete(project(), kind),
  });
};
