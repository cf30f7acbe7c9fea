import type { Activity, ActivityEnd, ActivityState, ActivityVersion, NewActivity } from "@herald/client";
import type { Command } from "commander";
import type { Context } from "../context.ts";
import { type Add, option } from "../define.ts";
import { UsageError } from "../failures.ts";
import { readText } from "../read-text.ts";

const fileOption = option("--file <path>", "the activity as JSON; `-`: stdin");
const stateOption = option("--state <json>", "the content state, instead of the file's");

type Choice = { readonly file?: string; readonly state?: string };

const parse = (json: string, what: string): unknown => {
  try {
    return JSON.parse(json);
  } catch {
    throw new UsageError(`${what}: must be JSON`);
  }
};

/** The activity of the file, with the state of the options. */
const read = async ({ file, state }: Choice): Promise<object> => {
  const fields = file === undefined ? {} : parse(await readFields(file), file);
  if (typeof fields !== "object" || fields === null) throw new UsageError(`${file}: must be a JSON object`);
  return { ...fields, ...(state !== undefined && { content_state: parse(state, "--state") }) };
};

const readFields = (file: string): Promise<string> =>
  readText(file).catch((error: Error) => {
    throw error instanceof UsageError ? error : new UsageError(`${file}: ${error.message}`);
  });

const showVersion = ({ record }: Context, made: Promise<ActivityVersion>) =>
  record(made, ({ id, version, notification_id }) => [
    ["id", id],
    ["version", version],
    ["notification", notification_id],
  ]);

const show = ({ record }: Context, found: Promise<Activity>) =>
  record(found, (activity) => [
    ["id", activity.id],
    ["status", activity.status],
    ["version", activity.version],
    ["attributes type", activity.attributes_type],
    ["state", JSON.stringify(activity.content_state)],
    ["targets", activity.targets],
    ["kind", activity.kind],
    ["channels", activity.channels?.map((one) => `${one.app} ${one.environment} ${one.problem ?? one.version ?? 1}`)],
    ["notification", activity.notification_id],
    ["created", activity.created_at],
    ["updated", activity.updated_at],
    ["ends", activity.ends_at],
    ["ended", activity.ended_at],
  ]);

export const addActivities = (group: Command, add: Add) => {
  add<Choice>(group, {
    usage: "start <id>",
    does: "Start a Live Activity; the same again is the same request",
    options: [fileOption, stateOption],
    examples: [["activity start order-4711 --file order.json", "attributes, state, alert and targets"]],
    run: async (context, [id = ""], choice) =>
      showVersion(context, context.herald().activities.start(id, (await read(choice)) as NewActivity)),
  });
  add<Choice & { sequence?: string }>(group, {
    usage: "update <id>",
    does: "Send a new state, which replaces the last one",
    options: [fileOption, stateOption, option("--sequence <n>", "a lower one than the newest is not written")],
    examples: [["activity update order-4711 --state '{\"minutes\":12}'", "what the card shows"]],
    run: async (context, [id = ""], { sequence, ...choice }) => {
      const state = { ...(await read(choice)), ...(sequence !== undefined && { sequence: Number(sequence) }) };
      return showVersion(context, context.herald().activities.update(id, state as ActivityState));
    },
  });
  add<Choice>(group, {
    usage: "end <id>",
    does: "End it with its last state",
    options: [fileOption, stateOption],
    run: async (context, [id = ""], choice) =>
      showVersion(context, context.herald().activities.end(id, (await read(choice)) as ActivityEnd)),
  });
  add(group, "get <id>", "Show its newest state", (context, [id = ""]) =>
    show(context, context.herald().activities.get(id)),
  );
};
