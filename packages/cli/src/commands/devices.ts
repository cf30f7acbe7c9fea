import type { Device, DeviceNotification } from "@herald/client";
import type { Command } from "commander";
import { choices } from "../choices.ts";
import type { ListChoice } from "../context.ts";
import {
  type Add,
  createdOptions,
  listOptions,
  option,
  type TimeChoice,
  timeOptions,
  timeRange,
  yesOption,
} from "../define.ts";
import { type ExportChoice, exportOptions, exportRows } from "./export-rows.ts";
import { addImport } from "./import-devices.ts";

const columns = [
  { title: "ID", value: ({ id }: Device) => id },
  { title: "PLATFORM", value: ({ platform }: Device) => platform },
  { title: "STATUS", value: ({ status }: Device) => status },
  { title: "USER", value: ({ user_id }: Device) => user_id },
  { title: "TOPICS", value: ({ topics }: Device) => topics },
  { title: "LAST SEEN", value: ({ last_seen_at, created_at }: Device) => last_seen_at ?? created_at },
];

const timelineColumns = [
  { title: "NOTIFICATION", value: ({ notification }: DeviceNotification) => notification.id },
  { title: "RESULT", value: ({ status }: DeviceNotification) => status },
  { title: "REASON", value: ({ reason }: DeviceNotification) => reason },
  { title: "ATTEMPTS", value: ({ attempts }: DeviceNotification) => attempts, right: true },
  { title: "AT", value: ({ at }: DeviceNotification) => at },
  { title: "OPENED", value: ({ opened_at }: DeviceNotification) => opened_at },
  { title: "TITLE", value: ({ notification: { title, body } }: DeviceNotification) => title ?? body },
];

const entries = (device: Device): [string, unknown][] => [
  ["id", device.id],
  ["platform", device.platform],
  ["status", device.status],
  ["user", device.user_id],
  ["token", device.token],
  ["environment", device.environment],
  ["topics", device.topics],
  ["metadata", device.metadata],
  ["identifiers", device.identifiers],
  ["last seen", device.last_seen_at],
  ["created", device.created_at],
  ["updated", device.updated_at],
];

const filterOptions = [
  option("--match <target>", "only the active devices that a send to this target reaches, in no order"),
  option("--status <status>", "only devices with this status").choices(choices.deviceStatus),
  option("--platform <platform>", "only devices of this platform").choices(choices.platform),
  option("--user <id>", "only devices of this user"),
  option("--push-token <token>", "only the devices with this push token"),
];

export const addDevices = (group: Command, add: Add) => {
  addImport(group, add);
  type Filters = { match?: string; status?: string; platform?: string; user?: string; pushToken?: string };
  add<ListChoice & TimeChoice & Filters>(group, {
    usage: "list",
    does: "List devices, newest first",
    options: [...filterOptions, ...timeOptions, ...listOptions],
    examples: [
      ["device list --all --json > devices.json", "every device, as JSON"],
      ["device list --match topic:news --all", "the devices that a send to the topic reaches"],
      ["device list --status inactive --platform android", "Android devices that get nothing"],
    ],
    run: ({ herald, signal, rows }, _, choice) => {
      const { match, status, platform, user, pushToken } = choice;
      const { sort, ...range } = timeRange(choice);
      const order = match === undefined || choice.oldestFirst ? { sort } : {};
      const filter = { match, status, platform, userId: user, token: pushToken, ...range, ...order };
      return rows(herald().devices.list({ ...filter, signal }), columns, choice);
    },
  });
  add<ExportChoice & Pick<TimeChoice, "createdAfter" | "createdBefore"> & Filters & { keys?: boolean }>(group, {
    usage: "export [file]",
    does: "Write every device to a file or to stdout; needs a token with the scope export",
    options: [
      ...exportOptions,
      option("--keys", "with the keys of Web Push subscriptions, which an import needs"),
      ...filterOptions,
      ...createdOptions,
    ],
    examples: [
      ["device export devices.ndjson --keys", "everything, to move it elsewhere"],
      ["device export --format csv --platform ios > devices.csv", "iOS devices, for a spreadsheet"],
    ],
    run: (context, [file], choice) => {
      const { user, pushToken, keys, format = "ndjson", ...rest } = choice;
      const filter = { ...rest, userId: user, token: pushToken };
      const { signal } = context;
      const lines = context
        .herald()
        .exports.lines("devices", format, { ...filter, ...(keys && { include: "keys" }), signal });
      return exportRows(context, file, choice, lines);
    },
  });
  add(group, {
    usage: "get <id>",
    does: "Show a device",
    run: async ({ herald, signal, record }, [id = ""]) => {
      const device = await herald().devices.get(id, { signal });
      record(device, entries(device));
    },
  });
  add<ListChoice>(group, {
    usage: "notifications <id>",
    does: "List what was sent to a device, newest first, with the result",
    options: listOptions,
    run: ({ herald, signal, rows }, [id = ""], choice) =>
      rows(herald().devices.notifications(id, { signal }), timelineColumns, choice),
  });
  add(group, {
    usage: "deactivate <id>",
    does: "Stop sending to a device until it registers again",
    run: async ({ herald, signal, record }, [id = ""]) => {
      const device = await herald().devices.deactivate(id, { signal });
      record(device, entries(device));
    },
  });
  add<{ yes?: boolean }>(group, {
    usage: "delete <id>",
    does: "Delete a device",
    options: [yesOption],
    run: async ({ herald, signal, result, confirm }, [id = ""], { yes }) => {
      await confirm(`Delete device ${id}?`, yes);
      await herald().devices.delete(id, { signal });
      result({ deleted: id }, () => `Deleted ${id}.`);
    },
  });
};
