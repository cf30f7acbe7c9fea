import type { EventType, Webhook, WebhookMessage, WebhookWithSecret } from "@herald/client";
import { knownValues } from "@herald/client/known-values";
import type { Command } from "commander";
import type { Context, ListChoice } from "../context.ts";
import {
  type Add,
  addDelete,
  listOptions,
  option,
  repeatable,
  type TimeChoice,
  timeFilters,
  timeOptions,
} from "../define.ts";
import { columnsFor, titled } from "../terminal/table.ts";

const columns = columnsFor<Webhook>(
  "id",
  {
    title: "STATE",
    value: ({ enabled, disabled_reason }) => (enabled ? "enabled" : `disabled: ${disabled_reason}`),
  },
  { title: "EVENTS", value: ({ events }) => events ?? "all" },
  "url",
);
const messageColumns = columnsFor<WebhookMessage>(
  "id",
  "status",
  { title: "TYPE", value: ({ type }) => type, whole: true },
  { title: "TRIES", value: ({ attempt_count }) => attempt_count, right: true },
  "last_error",
);

const entries = (webhook: Webhook): [string, unknown][] => [
  ...titled(webhook, "id", "url"),
  ["events", webhook.events ?? "all"],
  ["description", webhook.description],
  ["enabled", webhook.enabled ? "yes" : `no: ${webhook.disabled_reason}`],
  ...titled(webhook, "failing_since", "created_at"),
];
const showSecret = ({ record }: Context, { webhook, secret }: WebhookWithSecret) =>
  record({ ...webhook, secret }, () => [
    ...entries(webhook),
    ["secret", secret ?? "was in an answer that got lost: rotate it"],
  ]);
const showMessage = ({ record }: Context, sent: Promise<WebhookMessage>) =>
  record(sent, (message) => [
    ...titled(message, "id", "type", "status"),
    ["attempts", message.attempt_count],
    ...titled(message, "last_error", "next_attempt_at"),
  ]);

export const addWebhooks = (group: Command, add: Add) => {
  add<ListChoice & TimeChoice>(group, {
    usage: "list",
    does: "List webhooks, newest first",
    options: [...timeOptions, ...listOptions],
    run: ({ herald, rows }, _, choice) => rows(herald().webhooks.list(timeFilters(choice)), columns, choice),
  });
  add(group, "get <id>", "Show a webhook", ({ herald, record }, [id = ""]) =>
    record(herald().webhooks.get(id), entries),
  );
  add<{ event?: EventType[]; description?: string }>(group, {
    usage: "create <url>",
    does: "Create a webhook and show its secret, only this once",
    options: [
      repeatable("--event <type>", "only events of this type; repeatable", knownValues.eventType),
      option("--description <text>", "description"),
    ],
    run: async (context, [url = ""], { event: events, description }) =>
      showSecret(context, await context.herald().webhooks.create({ url, events, description })),
  });
  for (const [usage, does, enabled] of [
    ["enable <id>", "Enable a webhook", true],
    ["disable <id>", "Disable a webhook; events meanwhile can be recovered", false],
  ] as const)
    add(group, usage, does, ({ herald, record }, [id = ""]) =>
      record(herald().webhooks.update(id, { enabled }), entries),
    );
  add(
    group,
    "rotate-secret <id>",
    "Create a new secret; for a day messages are signed with both",
    async (context, [id = ""]) => showSecret(context, await context.herald().webhooks.rotateSecret(id)),
  );
  addDelete(group, add, {
    usage: "delete <id>",
    does: "Delete a webhook and its messages",
    question: (id) => `Delete webhook ${id} and its messages?`,
    run: (context, id) => context.herald().webhooks.delete(id),
  });
  add<ListChoice & { status?: string }>(group, {
    usage: "messages <id>",
    does: "List its messages, one per event",
    options: [
      option("--status <status>", "only messages with this status").choices(knownValues.messageStatus),
      ...listOptions,
    ],
    run: ({ herald, rows }, [id = ""], { status, ...choice }) =>
      rows(herald().webhooks.messages(id, { status }), messageColumns, choice),
  });
  add(
    group,
    "message <id> <message>",
    "Show a message with its payload and attempts",
    ({ herald, record }, [id = "", messageId = ""]) =>
      record(herald().webhooks.message(id, messageId), (message) => [
        ...titled(message, "id", "type", "status", "payload"),
        ...message.attempts.map(({ at, status, error, response, duration_ms }): [string, unknown] => [
          "attempt",
          [at, status, `${duration_ms} ms`, error, response].filter((part) => part !== undefined).join(" · "),
        ]),
      ]),
  );
  add(group, "resend <id> <message>", "Send a message again", (context, [id = "", message = ""]) =>
    showMessage(context, context.herald().webhooks.resend(id, message)),
  );
  add(group, "ping <id>", "Send a test message", async (context, [id = ""]) =>
    showMessage(context, context.herald().webhooks.ping(id)),
  );
  add<{ since: string }>(group, {
    usage: "recover <id>",
    does: "Resend everything that failed since a time",
    options: [option("--since <time>", "such as 2030-01-31T09:00:00Z").makeOptionMandatory()],
    run: async (context, [id = ""], { since }) => {
      const { terminal, result } = context;
      let messages = 0;
      for (let more = true; more; ) {
        const found = await context.herald().webhooks.recover(id, since);
        messages += found.messages;
        more = found.more;
        terminal.progress(`${messages} messages…`);
      }
      await result({ messages }, () => `${messages} messages are queued again.`);
    },
  });
};
