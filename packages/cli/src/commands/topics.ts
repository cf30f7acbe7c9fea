import type { SubscriptionResult, Topic } from "@herald/client";
import type { Command } from "commander";
import type { Context, ListChoice } from "../context.ts";
import { type Add, listOptions, option, type TimeChoice, timeOptions, timeRange, yesOption } from "../define.ts";

const columns = [
  { title: "ID", value: ({ id }: Topic) => id },
  { title: "NAME", value: ({ name }: Topic) => name },
  { title: "DEVICES", value: ({ devices }: Topic) => devices, right: true },
  { title: "CLOSED", value: ({ closed }: Topic) => (closed ? "yes" : "no") },
];
const show = ({ record }: Context, topic: Topic) =>
  record(topic, [
    ["id", topic.id],
    ["name", topic.name],
    ["devices", topic.devices],
    ["closed", topic.closed ? "yes" : "no"],
    ["created", topic.created_at],
  ]);
const showChange = ({ record }: Context, change: SubscriptionResult) =>
  record(change, [
    ["topic", change.topic.name],
    ["changed", change.changed],
    ["unknown", change.unknown.length > 0 ? change.unknown : undefined],
    ["without room", change.full.length > 0 ? change.full : undefined],
  ]);

export const addTopics = (group: Command, add: Add) => {
  add<ListChoice & TimeChoice>(group, {
    usage: "list",
    does: "List topics, newest first",
    options: [...timeOptions, ...listOptions],
    run: ({ herald, signal, rows }, _, choice) =>
      rows(herald().topics.list({ ...timeRange(choice), signal }), columns, choice),
  });
  add(group, {
    usage: "get <topic>",
    does: "Show a topic, by id or name",
    run: async (context, [topic = ""]) => show(context, await context.herald().topics.get(topic, context)),
  });
  add<{ closed?: boolean }>(group, {
    usage: "create <name>",
    does: "Create a topic",
    options: [option("--closed", "only a project token subscribes devices")],
    run: async (context, [name = ""], { closed }) =>
      show(context, await context.herald().topics.create({ name, closed }, { signal: context.signal })),
  });
  for (const [usage, does, closed] of [
    ["close <topic>", "Let only a project token subscribe devices", true],
    ["open <topic>", "Let devices subscribe themselves again", false],
  ] as const)
    add(group, {
      usage,
      does,
      run: async (context, [topic = ""]) =>
        show(context, await context.herald().topics.update(topic, { closed }, { signal: context.signal })),
    });
  add<{ yes?: boolean }>(group, {
    usage: "delete <topic>",
    does: "Delete a topic and its subscriptions",
    options: [yesOption],
    run: async ({ herald, signal, result, confirm }, [topic = ""], { yes }) => {
      await confirm(`Delete topic ${topic} and its subscriptions?`, yes);
      await herald().topics.delete(topic, { signal });
      result({ deleted: topic }, () => `Deleted ${topic}.`);
    },
  });
  for (const [name, does] of [
    ["subscribe", "Subscribe devices; a name that does not exist is created"],
    ["unsubscribe", "Unsubscribe devices"],
  ] as const)
    add(group, {
      usage: `${name} <topic> <devices...>`,
      does,
      run: async (context, [topic = "", ...devices]) =>
        showChange(context, await context.herald().topics[name](topic, devices, { signal: context.signal })),
    });
};
