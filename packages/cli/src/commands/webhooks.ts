import type { EventType, Webhook, WebhookMessage, WebhookWithSecret } from "@herald/client";
import type { Command } from "commander";
import { choices } from "../choices.ts";
import type { Context, ListChoice } from "../context.ts";
import {
  type Add,
  listOptions,
  option,
  repeated,
  type TimeChoice,
  timeOptions,
  timeRange,
  yesOption,
} from "../define.ts";

const columns = [
  { title: "ID", value: ({ id }: Webhook) => id },
  {
    title: "STATE",
    value: ({ enabled, disabled_reason }: Webhook) => (enabled ? "enabled" : `disabled: ${disabled_reason}`),
  },
  { title: "EVENTS", value: ({ events }: Webhook) => events ?? "all" },
  { title: "URL", value: ({ url }: Webhook) => url },
];
const messageColumns = [
  { title: "ID", value: ({ id }: WebhookMessage) => id },
  { title: "STATUS", value: ({ status }: WebhookMessage) => status },
  { title: "TYPE", value: ({ type }: WebhookMessage) => type, whole: true },
  { title: "TRIES", value: ({ attempt_count }: WebhookMessage) => attempt_count, right: true },
  { title: "LAST ERROR", value: ({ last_error }: WebhookMessage) => last_error },
];

const entries = (webhook: Webhook): [string, unknown][] => [
  ["id", webhook.id],
  ["url", webhook.url],
  ["events", webhook.events ?? "all"],
  ["description", webhook.description],
  ["enabled", webhook.enabled ? "yes" : `no: ${webhook.disabled_reason}`],
  ["failing since", webhook.failing_since],
  ["created", webhook.created_at],
];
const showSecret = ({ record }: Context, { webhook, secret }: WebhookWithSecret) =>
  record({ ...webhook, secret }, [
    ...entries(webhook),
    ["secret", secret ?? "was in an answer that got lost: rotate it"],
  ]);
const showMessage = ({ record }: Context, message: WebhookMessage) =>
  record(message, [
    ["id", message.id],
    ["type", message.type],
    ["status", message.status],
    ["attempts", message.attempt_count],
    ["last error", message.last_error],
    ["next attempt", message.next_attempt_at],
  ]);

export const addWebhooks = (group: Command, add: Add) => {
  add<ListChoice & TimeChoice>(group, {
    usage: "list",
    does: "List webhooks, newest first",
    options: [...timeOptions, ...listOptions],
    run: ({ herald, signal, rows }, _, choice) =>
      rows(herald().webhooks.list({ ...timeRange(choice), signal }), columns, choice),
  });
  add(group, {
    usage: "get <id>",
    does: "Show a webhook",
    run: async ({ herald, signal, record }, [id = ""]) => {
      const webhook = await herald().webhooks.get(id, { signal });
      record(webhook, entries(webhook));
    },
  });
  add<{ event?: EventType[]; description?: string }>(group, {
    usage: "create <url>",
    does: "Create a webhook and show its secret, only this once",
    options: [
      repeated("--event <type>", "only events of this type; repeatable", choices.eventType),
      option("--description <text>", "description"),
    ],
    run: async (context, [url = ""], { event: events, description }) =>
      showSecret(
        context,
        await context.herald().webhooks.create({ url, events, description }, { signal: context.signal }),
      ),
  });
  for (const [usage, does, enabled] of [
    ["enable <id>", "Enable a webhook", true],
    ["disable <id>", "Disable a webhook; events meanwhile can be recovered", false],
  ] as const)
    add(group, {
      usage,
      does,
      run: async ({ herald, signal, record }, [id = ""]) => {
        const webhook = await herald().webhooks.update(id, { enabled }, { signal });
        record(webhook, entries(webhook));
      },
    });
  add(group, {
    usage: "rotate-secret <id>",
    does: "Create a new secret; for a day messages are signed with both",
    run: async (context, [id = ""]) =>
      showSecret(context, await context.herald().webhooks.rotateSecret(id, { signal: context.signal })),
  });
  add<{ yes?: boolean }>(group, {
    usage: "delete <id>",
    does: "Delete a webhook and its messages",
    options: [yesOption],
    run: async ({ herald, signal, result, confirm }, [id = ""], { yes }) => {
      await confirm(`Delete webhook ${id} and its messages?`, yes);
      await herald().webhooks.delete(id, { signal });
      result({ deleted: id }, () => `Deleted ${id}.`);
    },
  });
  add<ListChoice & { status?: string }>(group, {
    usage: "messages <id>",
    does: "List its messages, one per event",
    options: [
      option("--status <status>", "only messages with this status").choices(choices.messageStatus),
      ...listOptions,
    ],
    run: ({ herald, signal, rows }, [id = ""], { status, ...choice }) =>
      rows(herald().webhooks.messages(id, { status, signal }), messageColumns, choice),
  });
  add(group, {
    usage: "message <id> <message>",
    does: "Show a message with its payload and attempts",
    run: async ({ herald, signal, record }, [id = "", messageId = ""]) => {
      const message = await herald().webhooks.message(id, messageId, { signal });
      record(message, [
        ["id", message.id],
        ["type", message.type],
        ["status", message.status],
        ["payload", message.payload],
        ...message.attempts.map(({ at, status, error, response, duration_ms }): [string, unknown] => [
          "attempt",
          [at, status, `${duration_ms} ms`, error, response].filter((part) => part !== undefined).join(" · "),
        ]),
      ]);
    },
  });
  add(group, {
    usage: "resend <id> <message>",
    does: "Send a message again",
    run: async (context, [id = "", message = ""]) =>
      showMessage(context, await context.herald().webhooks.resend(id, message, { signal: context.signal })),
  });
  add(group, {
    usage: "ping <id>",
    does: "Send a test message",
    run: async (context, [id = ""]) =>
      showMessage(context, await context.herald().webhooks.ping(id, { signal: context.signal })),
  });
  add<{ since: string }>(group, {
    usage: "recover <id>",
    does: "Resend everything that failed since a time",
    options: [option("--since <time>", "such as 2030-01-31T09:00:00Z").makeOptionMandatory()],
    run: async (context, [id = ""], { since }) => {
      const { signal, terminal, result } = context;
      let messages = 0;
      for (let more = true; more; ) {
        const found = await context.herald().webhooks.recover(id, since, { signal });
        messages += found.messages;
        more = found.more;
        terminal.progress(`${messages} messages…`);
      }
      result({ messages }, () => `${messages} messages are queued again.`);
    },
  });
};
