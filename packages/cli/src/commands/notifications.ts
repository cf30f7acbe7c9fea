import type { Delivery, Notification, PushType } from "@herald/client";
import type { Command } from "commander";
import type { ListChoice } from "../context.ts";
import {
  type Add,
  labelFilter,
  listOptions,
  numberOption,
  option,
  type TimeChoice,
  timeFilters,
  timeOptions,
} from "../define.ts";
import { columnsFor, fields } from "../terminal/table.ts";
import type { Terminal } from "../terminal/terminal.ts";
import { formatNumber, show } from "../terminal/text.ts";
import { approvalEntries } from "./approvals.ts";
import { addExport, deliveryStatus, notificationFilters } from "./exports.ts";
import { type PauseChoice, pauseInWords, reasonOption } from "./pauses.ts";
import { perMinuteOption, rolloutEntries } from "./rollout.ts";
import { readUploaded, uploadWords } from "./send-recipients.ts";
import { changeOfTime, type SendTime, sendTimeOptions } from "./send-time.ts";

/** Devices by reason, in words; undefined: none. */
export const reasons = (by: Readonly<Record<string, number>>): string | undefined =>
  Object.entries(by)
    .map(([reason, devices]) => `${formatNumber(devices)} ${reason}`)
    .join(", ") || undefined;

const labelsInWords = (labels: Readonly<Record<string, string>> = {}): string | undefined =>
  Object.entries(labels)
    .map(([name, value]) => `${name}=${value}`)
    .join(", ") || undefined;

const activityInWords = (activity: Notification["activity"]): string | undefined =>
  activity &&
  `${activity.event} of ${activity.id}${activity.version === undefined ? "" : `, version ${activity.version}`}`;

/** Each wave with its time, and its devices once it was sent. */
const wavesInWords = (schedule: Notification["schedule"]): readonly string[] | undefined =>
  schedule?.map(
    ({ at, status, devices }) => `${at} ${status}${devices === undefined ? "" : ` to ${formatNumber(devices)}`}`,
  );

/** A notification with its delivery counts. */
export const inWords = (notification: Notification, terminal: Terminal): string => {
  const { id, status, title, body, targets, link_to, counts, failures, skips, unmatched, opens } = notification;
  const rate = opens?.open_rate;
  const opened =
    rate === undefined || rate === null
      ? counts.opened
      : `${formatNumber(counts.opened)} (${Math.round(rate * 100)} %)`;
  const asked = counts.receipts_asked;
  // Responses to pauses and decisions have no reports of devices.
  const isUnknown = counts.received === undefined;
  const received =
    isUnknown || asked + counts.received === 0
      ? undefined
      : `${formatNumber(counts.received)} of ${formatNumber(asked)} asked`;
  return fields(
    [
      ["id", id],
      ["status", status],
      ...approvalEntries(notification),
      ["paused", notification.paused && pauseInWords(notification.paused)],
      ["title", title],
      ["body", body],
      ["targets", targets],
      ["unmatched", unmatched.length > 0 ? unmatched : undefined],
      ["link", link_to],
      ["kind", notification.kind],
      ["labels", labelsInWords(notification.labels)],
      ["activity", activityInWords(notification.activity)],
      ["send at", notification.send_at],
      ["time zone", notification.time_zone],
      ["waves", wavesInWords(notification.schedule)],
      ...rolloutEntries(notification.rollout),
      ["created", notification.created_at],
      ["completed", notification.completed_at],
      ["devices", counts.devices],
      ["pending", counts.pending || undefined],
      ["accepted", counts.accepted],
      ["failed", reasons(failures) ?? counts.failed],
      ["expired", counts.expired || undefined],
      ["cancelled", counts.cancelled || undefined],
      ["skipped", reasons(skips)],
      ["received", received],
      ["opened", opened],
      ["by button", reasons(counts.buttons ?? {})],
      ["dismissed", counts.dismissed || undefined],
    ],
    terminal,
  );
};

/** Of a proposed notification those that it would reach. */
const shownDevices = ({ status, counts, approval }: Notification): number | undefined =>
  status === "proposed" ? approval?.devices : counts.devices;

export const notificationTable = columnsFor<Notification>(
  "id",
  "status",
  { title: "DEVICES", value: shownDevices, right: true },
  { title: "FAILED", value: ({ counts }) => counts.failed, right: true },
  { title: "OPENED", value: ({ counts }) => counts.opened, right: true },
  { title: "TITLE", value: ({ title, body }) => title ?? body },
);

const decisions = [
  [
    "approve",
    "Send a proposed notification that another person sent (admin token)",
    ["notification approve ntf_… --reason 'checked with marketing'", "send it, now or at its time"],
  ],
  [
    "reject",
    "Cancel a proposed notification (admin token)",
    ["notification reject ntf_… --reason 'the wrong link'", "send nothing of it"],
  ],
] as const;

const deliveryColumns = columnsFor<Delivery>("device_id", "status", "reason", "platform", "attempts", "at");

export const addNotifications = (group: Command, add: Add) => {
  add<ListChoice & TimeChoice & { status?: string; kind?: string; label?: string; pushType?: PushType }>(group, {
    usage: "list",
    does: "List notifications, newest first",
    options: [...notificationFilters, ...timeOptions, ...listOptions],
    examples: [
      ["notification list --status scheduled", "what will be sent later"],
      ["notification list --status proposed", "what waits for approval"],
      ["notification list --label campaign=spring", "what a campaign sent"],
    ],
    run: ({ herald, rows }, _, choice) => {
      const { status, kind, label, pushType } = choice;
      const filter = { status, kind, label: label && labelFilter(label), push_type: pushType };
      return rows(herald().notifications.list({ ...filter, ...timeFilters(choice) }), notificationTable, choice);
    },
  });
  addExport(group, add, "notifications");
  add(group, "get <id>", "Show a notification with its delivery counts", ({ herald, result, terminal }, [id = ""]) =>
    result(herald().notifications.get(id), (found) => inWords(found, terminal)),
  );
  add<ListChoice & { status?: string }>(group, {
    usage: "deliveries <id>",
    does: "List its deliveries, one row per device",
    options: [deliveryStatus, ...listOptions],
    examples: [["notification deliveries ntf_… --status failed --all", "every failed device with its reason"]],
    run: ({ herald, rows }, [id = ""], { status, ...choice }) =>
      rows(herald().notifications.deliveries(id, { status }), deliveryColumns, choice),
  });
  add(
    group,
    "recipients <id>",
    "Show how far its file of recipients is, and the first lines that were refused or have no device",
    async ({ herald, result }, [id = ""]) => result(await readUploaded(herald(), id), uploadWords),
  );
  add(
    group,
    "trace <id> <device>",
    "Explain why a device got it or did not",
    ({ herald, result, terminal }, [id = "", device = ""]) =>
      result(
        herald().notifications.trace(id, device),
        (trace) =>
          `${terminal.paint("bold", trace.status)}\n${trace.explanation.map((line) => `  ${show(line)}`).join("\n")}`,
      ),
  );
  add<SendTime & { ttl?: number; perMinute?: number }>(group, {
    usage: "update <id>",
    does: "Change when it is sent, before it begins, or slow its rollout down",
    options: [
      ...sendTimeOptions,
      numberOption("--ttl <seconds>", "time to live"),
      perMinuteOption("a lower speed of its rollout, also while it is sent; alone"),
    ],
    examples: [
      ["notification update ntf_… --at 2030-01-31T10:00:00+01:00", "send it at another time"],
      ["notification update ntf_… --per-minute 10000", "go on more slowly"],
    ],
    run: async ({ herald, result, terminal }, [id = ""], { ttl, perMinute, ...time }) => {
      const { notifications } = herald();
      const rollout = perMinute === undefined ? undefined : { per_minute: perMinute };
      await notifications.update(id, { ...changeOfTime(time), ttl, rollout });
      await result(notifications.get(id), (found) => inWords(found, terminal));
    },
  });
  add<PauseChoice>(group, {
    usage: "pause <id>",
    does: "Send nothing more of it until it is resumed",
    options: [reasonOption],
    examples: [["notification pause ntf_… --reason 'the wrong link'", "stop it, and look before it goes on"]],
    run: ({ herald, result, terminal }, [id = ""], pause) =>
      result(herald().notifications.pause(id, pause), (found) => inWords(found, terminal)),
  });
  add(group, "resume <id>", "Send what waits since it was paused", ({ herald, result, terminal }, [id = ""]) =>
    result(herald().notifications.resume(id), (found) => inWords(found, terminal)),
  );
  for (const [decision, does, example] of decisions)
    add<Pick<PauseChoice, "reason">>(group, {
      usage: `${decision} <id>`,
      does,
      options: [option("--reason <text>", "why, for those who see the decision")],
      examples: [example],
      run: ({ admin, project, result, terminal }, [id = ""], { reason }) =>
        result(admin().notifications[decision](project(), id, { reason }), (found) => inWords(found, terminal)),
    });
  add(group, "cancel <id>", "Cancel deliveries that are not sent yet", ({ herald, result, terminal }, [id = ""]) =>
    result(herald().notifications.cancel(id), (found) => inWords(found, terminal)),
  );
};
