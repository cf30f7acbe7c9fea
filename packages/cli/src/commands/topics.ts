import type { SubscriptionResult, Topic } from "@herald/client";
import type { Command } from "commander";
import type { Context, ListChoice } from "../context.ts";
import { type Add, addDelete, listOptions, option, type TimeChoice, timeFilters, timeOptions } from "../define.ts";
import { columnsFor, titled } from "../terminal/table.ts";

const columns = columnsFor<Topic>("id", "name", "devices", {
  title: "CLOSED",
  value: ({ closed }) => (closed ? "yes" : "no"),
});
const show = ({ record }: Context, found: Promise<Topic>) =>
  record(found, (topic) => [
    ...titled(topic, "id", "name", "devices"),
    ["closed", topic.closed ? "yes" : "no"],
    ["created", topic.created_at],
  ]);
const showChange = ({ record }: Context, made: Promise<SubscriptionResult>) =>
  record(made, (change) => [
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
    run: ({ herald, rows }, _, choice) => rows(herald().topics.list(timeFilters(choice)), columns, choice),
  });
  add(group, "get <topic>", "Show a topic, by id or name", (context, [topic = ""]) =>
    show(context, context.herald().topics.get(topic)),
  );
  add<{ closed?: boolean }>(group, {
    usage: "create <name>",
    does: "Create a topic",
    options: [option("--closed", "only a project token subscribes devices")],
    run: (context, [name = ""], { closed }) => show(context, context.herald().topics.create({ name, closed })),
  });
  for (const [usage, does, closed] of [
    ["close <topic>", "Let only a project token subscribe devices", true],
    ["open <topic>", "Let devices subscribe themselves again", false],
  ] as const)
    add(group, usage, does, (context, [topic = ""]) =>
      show(context, context.herald().topics.update(topic, { closed })),
    );
  addDelete(group, add, {
    usage: "delete <topic>",
    does: "Delete a topic and its subscriptions",
    question: (id) => `Delete topic ${id} and its subscriptions?`,
    run: (context, id) => context.herald().topics.delete(id),
  });
  for (const [name, does] of [
    ["subscribe", "Subscribe devices; a name that does not exist is created"],
    ["unsubscribe", "Unsubscribe devices"],
  ] as const)
    add(group, `${name} <topic> <devices...>`, does, (context, [topic = "", ...devices]) =>
      showChange(context, context.herald().topics[name](topic, devices)),
    );
};
