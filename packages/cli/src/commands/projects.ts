import type { LimitsChange, Project, ProjectLimit } from "@herald/client";
import type { Command } from "commander";
import type { ListChoice } from "../context.ts";
import { type Add, addDelete, listOptions, option, parsePairs, repeatable } from "../define.ts";
import { UsageError } from "../failures.ts";
import { columnsFor, createTable, titled } from "../terminal/table.ts";
import { formatNumber } from "../terminal/text.ts";
import { parseApproval } from "./approvals.ts";
import { parseQuietHours } from "./kinds.ts";
import { type PauseChoice, pauseInWords, pauseOptions } from "./pauses.ts";

const columns = columnsFor<Project>("id", "key", "name", "created_at");
const entries = (project: Project): [string, unknown][] => [
  ...titled(project, "id", "key", "name"),
  ["open registration", project.open_registration ? "yes" : "no"],
  ["protected metadata", project.protected_metadata],
  ["stale after", project.stale_after ?? "off"],
  ["receipts", project.receipts],
  ["quiet hours", project.quiet_hours ? Object.values(project.quiet_hours).join(" ") : "none"],
  ["default time zone", project.default_time_zone],
  ["approval", project.approval && `for more than ${formatNumber(project.approval.devices)} devices`],
  [project.paused?.of === "installation" ? "all paused" : "paused", project.paused && pauseInWords(project.paused)],
  ["created", project.created_at],
];

const limitColumns = columnsFor<ProjectLimit>(
  // In one column, which is never truncated: on a narrow terminal it has a line of its own.
  { title: "LIMIT", value: ({ name, description }) => `${name}: ${description}` },
  { title: "USED", value: ({ used }) => used ?? "", right: true },
  {
    title: "MOST",
    value: ({ limit, default: usual }) =>
      limit === usual ? limit : `${formatNumber(limit)}, default ${formatNumber(usual)}`,
    right: true,
  },
  { title: "IN", value: ({ seconds }) => (seconds === undefined ? "" : `${seconds} s`) },
  { title: "VARIABLE", value: ({ variable }) => variable, whole: true },
);

/** Limits of `--limit sends=200000`; `default` takes one back. */
const parseLimits = (pairs: readonly string[]): LimitsChange =>
  Object.fromEntries(
    Object.entries(parsePairs(pairs, "--limit")).map(([name, value]) => {
      if (value === "default") return [name, null];
      if (!/^\d{1,10}$/.test(value))
        throw new UsageError(`--limit ${name}=${value}: must be a whole number, or default.`);
      return [name, Number(value)];
    }),
  );

/** `on`, `off` or a share such as `0.2`. */
export const parseShare = (text: string): boolean | number => {
  if (text === "on" || text === "off") return text === "on";
  if (/^(0(\.\d+)?|1(\.0+)?)$/.test(text)) return Number(text);
  throw new UsageError(`--receipts ${text}: must be on, off or a share of the devices such as 0.2.`);
};

const keyOption = option(
  "--key <key>",
  "names it in files and scripts, such as shop; unique, and fixed once it is set",
);

type Change = {
  readonly name?: string;
  readonly key?: string;
  readonly openRegistration?: "on" | "off";
  readonly staleAfter?: string;
  readonly receipts?: string;
  readonly quietHours?: string;
  readonly defaultTimeZone?: string;
  readonly approval?: string;
};

export const addProjects = (group: Command, add: Add) => {
  add<{ name: string; key?: string }>(group, {
    usage: "create",
    does: "Create a project and show its first token, only this once",
    options: [option("--name <name>", "name of the project").makeOptionMandatory(), keyOption],
    examples: [["project create --name News", "then give it providers: herald provider set"]],
    run: async ({ admin, record }, _, { name, key }) => {
      const { project, token } = await admin().projects.create({ name, key });
      const lost = "was in an answer that got lost: `herald token create` makes another";
      await record({ ...project, token }, () => [...entries(project), ["token", token ?? lost]]);
    },
  });
  add<ListChoice>(group, {
    usage: "list",
    does: "List projects, oldest first",
    options: listOptions,
    run: ({ admin, rows }, _, choice) => rows(admin().projects.list(), columns, choice),
  });
  add(group, "get [id]", "Show a project (default: the profile's)", ({ admin, record, project: own }, [id]) =>
    record(admin().projects.get(id ?? own()), entries),
  );
  add<Change>(group, {
    usage: "update [id]",
    does: "Change a project (default: the profile's)",
    options: [
      option("--name <name>", "new name"),
      keyOption,
      option("--open-registration <state>", "whether apps may register devices without a token").choices(["on", "off"]),
      option("--stale-after <duration>", "deactivate devices not seen for so long, such as 90d, 26w or off"),
      option("--receipts <share>", "share of devices that sends ask to report the arrival: on, off or 0 to 1"),
      option("--quiet-hours <hours>", "no notifications at night: 22:00-07:00, 22:00-07:00/skip or none"),
      option("--default-time-zone <zone>", "time zone of devices that name none, such as Europe/Berlin"),
      option("--approval <devices>", "sends to more devices wait for a second person: 1000 or more, or off"),
    ],
    examples: [
      ["project update --stale-after 90d", "stop sending to devices that were not seen for 90 days"],
      ["project update --approval 10000", "ask another operator before a send to more than 10,000 devices"],
    ],
    run: async (
      { admin, record, project: own },
      [id = own()],
      { name, key, openRegistration, staleAfter, receipts, quietHours, defaultTimeZone, approval },
    ) => {
      const change = {
        name,
        open_registration: openRegistration && openRegistration === "on",
        stale_after: staleAfter === "off" ? null : staleAfter,
        receipts: receipts === undefined ? undefined : parseShare(receipts),
        quiet_hours: parseQuietHours(quietHours),
        default_time_zone: defaultTimeZone,
        approval: parseApproval(approval),
      };
      const { projects } = admin();
      const isOther = Object.values(change).some((value) => value !== undefined);
      const keyed = key === undefined ? undefined : await projects.setKey(id, key);
      await record(keyed === undefined || isOther ? projects.update(id, change) : keyed, entries);
    },
  });
  add(
    group,
    "limits [id]",
    "List the limits and quotas of a project, and how much is in use (default: the profile's)",
    ({ admin, result, terminal, project: own }, [id]) =>
      result(admin().projects.limits(id ?? own()), (limits) => createTable(limitColumns, terminal)(limits).join("\n")),
  );
  add<{ limit: readonly string[] }>(group, {
    usage: "set-limits [id]",
    does: "Change limits and quotas of a project, within a second (default: the profile's)",
    options: [
      repeatable("--limit <name=value>", "name of `project limits`, and a number or `default`").makeOptionMandatory(),
    ],
    examples: [["project set-limits --limit sends=200000 --limit devices=default", "200,000 notifications an hour"]],
    run: async ({ admin, result, terminal, project: own }, [id], { limit }) => {
      const projectId = id ?? own();
      const change = parseLimits(limit);
      await admin().projects.changeLimits(projectId, change);
      // Gateways apply the change a moment later, so the list shows what was asked for.
      const now = (await admin().projects.limits(projectId)).map((one) => {
        const set = (change as Readonly<Record<string, number | null | undefined>>)[one.name];
        return set === undefined ? one : { ...one, limit: set ?? one.default };
      });
      await result(now, (limits) => createTable(limitColumns, terminal)(limits).join("\n"));
    },
  });
  add<PauseChoice>(group, {
    usage: "pause [id]",
    does: "Send nothing of a project until it is resumed (default: the profile's)",
    options: pauseOptions,
    examples: [["project pause --reason 'a wrong push is on its way'", "stop all sends of the project at once"]],
    run: ({ admin, record, project: own }, [id = own()], pause) => record(admin().projects.pause(id, pause), entries),
  });
  add(
    group,
    "resume [id]",
    "Send what waits since a project was paused (default: the profile's)",
    ({ admin, record, project: own }, [id = own()]) => record(admin().projects.resume(id), entries),
  );
  addDelete(group, add, {
    usage: "delete <id>",
    does: "Delete a project and all its data",
    question: (id) => `Delete project ${id} with its devices, notifications and statistics?`,
    run: (context, id) => context.admin().projects.delete(id),
  });
};
