import { parseArgs } from "node:util";
import { durables, EventType, eventSubject, ProjectId } from "@herald/contracts";
import { consumerPrefix } from "../permissions/index.ts";

export const usage = `consumer add <name> --project <id>|'*' [--project …] [--event <type> …] [--from all|new|<time>]
  Makes a durable of the events, and a user who may read it and nothing else; prints how to connect.
  Again, for the same name: a new password and other filters, while its position stays.
consumer replay <name> --from all|<time>
  Gives it the events since then once more.
consumer remove <name>
  Takes the durable away, and the user where --accounts names its file.

  --event     such as io.herald.notification.opened.v1; absent: every event of the project
  --from      where it begins: all that the stream keeps (the default), what comes from now on, or 2026-11-21T08:00:00Z
  --accounts  the file of consumers' accounts that nats-server's configuration includes; absent: shows what belongs there
  --reload    the command that has nats-server read it, such as 'docker compose kill --signal HUP nats'`;

/** A mistake in the operator's arguments, described in words. */
export class ArgumentError extends Error {}

export type From = "all" | "new" | Date;

export type ConsumerArguments = { readonly durable: string; readonly accounts?: string; readonly reload?: string } & (
  | { readonly verb: "add"; readonly filters: readonly string[]; readonly from: From }
  | { readonly verb: "replay"; readonly from: From }
  | { readonly verb: "remove" }
);

/** With the prefix a durable's name stays within 32 characters. */
const nameForm = /^[a-z0-9](?:[a-z0-9-]{0,20}[a-z0-9])?$/;

const options = {
  project: { type: "string", multiple: true, default: [] as string[] },
  event: { type: "string", multiple: true, default: [] as string[] },
  from: { type: "string" },
  accounts: { type: "string" },
  reload: { type: "string" },
} as const;

/** Throws ArgumentError. */
export const parseConsumerArguments = (args: readonly string[]): ConsumerArguments => {
  const { values, positionals } = readArguments(args);
  const [verb, name = "", ...rest] = positionals;
  if (rest.length > 0) throw new ArgumentError(`one name at a time, so what is "${rest.join(" ")}"?`);
  if (!nameForm.test(name)) throw new ArgumentError("a name is 1 to 22 small letters, digits and hyphens");
  const durable = `${consumerPrefix}${name}`;
  if (durable in durables) throw new ArgumentError(`"${name}" is Herald's own: the bootstrap step makes it`);
  const { accounts, reload } = values;
  const common = { durable, ...(accounts && { accounts }), ...(reload && { reload }) };
  if (verb === "add")
    return { ...common, verb, filters: filtersOf(values.project, values.event), from: fromOf(values.from ?? "all") };
  if (verb === "replay") {
    if (values.from === undefined) throw new ArgumentError("a replay needs --from");
    return { ...common, verb, from: fromOf(values.from) };
  }
  if (verb === "remove") return { ...common, verb };
  throw new ArgumentError(verb === undefined ? "what is to be done?" : `there is no "${verb}"`);
};

const readArguments = (args: readonly string[]) => {
  try {
    return parseArgs({ args: [...args], options, allowPositionals: true });
  } catch (error) {
    throw new ArgumentError(error instanceof Error ? error.message : String(error));
  }
};

const filtersOf = (projects: readonly string[], types: readonly string[]): string[] => {
  if (projects.length === 0)
    throw new ArgumentError("whose events? --project <id>, or --project '*' for every project's");
  const wrong = projects.filter((id) => id !== "*" && !ProjectId.safeParse(id).success);
  if (wrong.length > 0) throw new ArgumentError(`not the id of a project: ${wrong.join(", ")}`);
  const unknown = types.filter((type) => !EventType.safeParse(type).success);
  if (unknown.length > 0)
    throw new ArgumentError(`event not found: ${unknown.join(", ")}. There are ${EventType.options.join(", ")}`);
  const whose = projects.includes("*") ? ["*"] : [...new Set(projects)];
  const wanted = types.length === 0 ? [undefined] : [...new Set(types)];
  return whose.flatMap((project) => wanted.map((type) => eventSubject(project, type)));
};

const fromOf = (text: string): From => {
  if (text === "all" || text === "new") return text;
  const time = new Date(text);
  if (Number.isNaN(time.getTime())) throw new ArgumentError(`"${text}" is not a time, such as 2026-11-21T08:00:00Z`);
  return time;
};
