import type { Delivery, Notification } from "@herald/client";
import type { Command } from "commander";
import { choices } from "../choices.ts";
import type { ListChoice } from "../context.ts";
import { type Add, listOptions, option, type TimeChoice, timeOptions, timeRange } from "../define.ts";
import { labelFilter } from "../pairs.ts";
import { fields } from "../terminal/table.ts";
import type { Terminal } from "../terminal/terminal.ts";
import { count, show } from "../terminal/text.ts";
import { addExport } from "./exports.ts";

const reasons = (by: Readonly<Record<string, number>>): string | undefined =>
  Object.entries(by)
    .map(([reason, devices]) => `${count(devices)} ${reason}`)
    .join(", ") || undefined;

const labelsInWords = (labels: Readonly<Record<string, string>> = {}): string | undefined =>
  Object.entries(labels)
    .map(([name, value]) => `${name}=${value}`)
    .join(", ") || undefined;

/** A notification with its delivery counts. */
export const inWords = (notification: Notification, terminal: Terminal): string => {
  const { id, status, title, body, targets, link_to, counts, failures, skips, unmatched, opens } = notification;
  const rate = opens?.open_rate;
  const opened =
    rate === undefined || rate === null ? counts.opened : `${count(counts.opened)} (${Math.round(rate * 100)} %)`;
  return fields(
    [
      ["id", id],
      ["status", status],
      ["title", title],
      ["body", body],
      ["targets", targets],
      ["unmatched", unmatched.length > 0 ? unmatched : undefined],
      ["link", link_to],
      ["kind", notification.kind],
      ["labels", labelsInWords(notification.labels)],
      ["send at", notification.send_at],
      ["created", notification.created_at],
      ["completed", notification.completed_at],
      ["devices", counts.devices],
      ["pending", counts.pending || undefined],
      ["accepted", counts.accepted],
      ["failed", reasons(failures) ?? counts.failed],
      ["expired", counts.expired || undefined],
      ["cancelled", counts.cancelled || undefined],
      ["skipped", reasons(skips)],
      ["opened", opened],
    ],
    terminal,
  );
};

export const notificationColumns = [
  { title: "ID", value: ({ id }: Notification) => id },
  { title: "STATUS", value: ({ status }: Notification) => status },
  { title: "DEVICES", value: ({ counts }: Notification) => counts.devices, right: true },
  { title: "FAILED", value: ({ counts }: Notification) => counts.failed, right: true },
  { title: "OPENED", value: ({ counts }: Notification) => counts.opened, right: true },
  { title: "TITLE", value: ({ title, body }: Notification) => title ?? body },
];

const deliveryColumns = [
  { title: "DEVICE", value: ({ device_id }: Delivery) => device_id },
  { title: "STATUS", value: ({ status }: Delivery) => status },
  { title: "REASON", value: ({ reason }: Delivery) => reason },
  { title: "PLATFORM", value: ({ platform }: Delivery) => platform },
  { title: "ATTEMPTS", value: ({ attempts }: Delivery) => attempts, right: true },
  { title: "AT", value: ({ at }: Delivery) => at },
];

export const addNotifications = (group: Command, add: Add) => {
  add<ListChoice & TimeChoice & { status?: string; kind?: string; label?: string }>(group, {
    usage: "list",
    does: "List notifications, newest first",
    options: [
      option("--status <status>", "only notifications with this status").choices(choices.notificationStatus),
      option("--kind <kind>", "only of this kind"),
      option("--label <name=value>", "only with this label"),
      ...timeOptions,
      ...listOptions,
    ],
    examples: [
      ["notification list --status scheduled", "what will be sent later"],
      ["notification list --label campaign=spring", "what a campaign sent"],
    ],
    run: ({ herald, signal, rows }, _, choice) => {
      const { status, kind, label } = choice;
      const filter = { status, kind, label: label && labelFilter(label) };
      return rows(
        herald().notifications.list({ ...filter, ...timeRange(choice), signal }),
        notificationColumns,
        choice,
      );
    },
  });
  addExport(group, add, "notifications");
  add(group, {
    usage: "get <id>",
    does: "Show a notification with its delivery counts",
    run: async ({ herald, signal, result, terminal }, [id = ""]) => {
      const found = await herald().notifications.get(id, { signal });
      result(found, () => inWords(found, terminal));
    },
  });
  add<ListChoice & { status?: string }>(group, {
    usage: "deliveries <id>",
    does: "List its deliveries, one row per device",
    options: [
      option("--status <status>", "only deliveries with this status").choices(choices.deliveryStatus),
      ...listOptions,
    ],
    examples: [["notification deliveries ntf_… --status failed --all", "every failed device with its reason"]],
    run: ({ herald, signal, rows }, [id = ""], { status, ...choice }) =>
      rows(herald().notifications.deliveries(id, { status, signal }), deliveryColumns, choice),
  });
  add(group, {
    usage: "trace <id> <device>",
    does: "Explain why a device got it or did not",
    run: async ({ herald, signal, result, terminal }, [id = "", device = ""]) => {
      const trace = await herald().notifications.trace(id, device, { signal });
      result(
        trace,
        () =>
          `${terminal.paint("bold", trace.status)}\n${trace.explanation.map((line) => `  ${show(line)}`).join("\n")}`,
      );
    },
  });
  add(group, {
    usage: "cancel <id>",
    does: "Cancel what is not sent yet",
    run: async ({ herald, signal, result, terminal }, [id = ""]) => {
      const found = await herald().notifications.cancel(id, { signal });
      result(found, () => inWords(found, terminal));
    },
  });
};
