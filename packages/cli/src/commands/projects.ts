import type { Project, ProjectLimit } from "@herald/client";
import type { Command } from "commander";
import type { ListChoice } from "../context.ts";
import { type Add, listOptions, option, yesOption } from "../define.ts";
import { createTable } from "../terminal/table.ts";

const columns = [
  { title: "ID", value: ({ id }: Project) => id },
  { title: "NAME", value: ({ name }: Project) => name },
  { title: "CREATED", value: ({ created_at }: Project) => created_at },
];
const entries = (project: Project): [string, unknown][] => [
  ["id", project.id],
  ["name", project.name],
  ["open registration", project.open_registration ? "yes" : "no"],
  ["protected metadata", project.protected_metadata],
  ["stale after", project.stale_after ?? "off"],
  ["warnings", project.warnings],
  ["created", project.created_at],
];

const limitColumns = [
  { title: "LIMIT", value: ({ name }: ProjectLimit) => name },
  { title: "COUNTS", value: ({ description }: ProjectLimit) => description },
  { title: "USED", value: ({ used }: ProjectLimit) => used ?? "", right: true },
  { title: "MOST", value: ({ limit }: ProjectLimit) => limit, right: true },
  { title: "IN", value: ({ seconds }: ProjectLimit) => (seconds === undefined ? "" : `${seconds} s`) },
  { title: "VARIABLE", value: ({ variable }: ProjectLimit) => variable, whole: true },
];

type Change = { readonly name?: string; readonly openRegistration?: "on" | "off"; readonly staleAfter?: string };

export const addProjects = (group: Command, add: Add) => {
  add<{ name: string }>(group, {
    usage: "create",
    does: "Create a project and show its first token, only this once",
    options: [option("--name <name>", "name of the project").makeOptionMandatory()],
    examples: [["project create --name News", "then give it providers: herald provider set"]],
    run: async ({ admin, signal, record }, _, { name }) => {
      const { project, token } = await admin().projects.create({ name }, { signal });
      const lost = "was in an answer that got lost: `herald token create` makes another";
      record({ ...project, token }, [...entries(project), ["token", token ?? lost]]);
    },
  });
  add<ListChoice>(group, {
    usage: "list",
    does: "List projects, oldest first",
    options: listOptions,
    run: ({ admin, signal, rows }, _, choice) => rows(admin().projects.list({ signal }), columns, choice),
  });
  add(group, {
    usage: "get [id]",
    does: "Show a project (default: the profile's)",
    run: async ({ admin, signal, record, project: own }, [id]) => {
      const project = await admin().projects.get(id ?? own(), { signal });
      record(project, entries(project));
    },
  });
  add<Change>(group, {
    usage: "update [id]",
    does: "Change a project (default: the profile's)",
    options: [
      option("--name <name>", "new name"),
      option("--open-registration <state>", "whether apps may register devices without a token").choices(["on", "off"]),
      option("--stale-after <duration>", "deactivate devices not seen for so long, such as 90d, 26w or off"),
    ],
    examples: [["project update --stale-after 90d", "stop sending to devices that were not seen for 90 days"]],
    run: async ({ admin, signal, record, project: own }, [id], { name, openRegistration, staleAfter }) => {
      const change = {
        name,
        open_registration: openRegistration && openRegistration === "on",
        stale_after: staleAfter === "off" ? null : staleAfter,
      };
      const project = await admin().projects.update(id ?? own(), change, { signal });
      record(project, entries(project));
    },
  });
  add(group, {
    usage: "limits [id]",
    does: "List the limits and quotas of a project, and how much is in use (default: the profile's)",
    run: async ({ admin, signal, result, terminal, project: own }, [id]) => {
      const limits = await admin().projects.limits(id ?? own(), { signal });
      result(limits, () => createTable(limitColumns, terminal)(limits).join("\n"));
    },
  });
  add<{ yes?: boolean }>(group, {
    usage: "delete <id>",
    does: "Delete a project and all its data",
    options: [yesOption],
    run: async ({ admin, signal, result, confirm }, [id = ""], { yes }) => {
      await confirm(`Delete project ${id} with its devices, notifications and statistics?`, yes);
      await admin().projects.delete(id, { signal });
      result({ deleted: id }, () => `Deleted ${id}.`);
    },
  });
};
