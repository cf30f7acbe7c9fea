import type { Device, DeviceNotification, Target } from "@herald/client";
import { knownValues } from "@herald/client/known-values";
import type { Command } from "commander";
import type { ListChoice } from "../context.ts";
import {
  type Add,
  addDelete,
  createdOptions,
  listOptions,
  option,
  type TimeChoice,
  timeFilters,
  timeOptions,
} from "../define.ts";
import { columnsFor, titled } from "../terminal/table.ts";
import { type ExportChoice, exportOptions, exportRows } from "./exports.ts";
import { addImport } from "./import-devices.ts";
import { addDevicePreferences } from "./preferences.ts";

const columns = columnsFor<Device>("id", "platform", "status", "user_id", "topics", {
  title: "LAST SEEN",
  value: ({ last_seen_at, created_at }) => last_seen_at ?? created_at,
});

const timelineColumns = columnsFor<DeviceNotification>(
  { title: "NOTIFICATION", value: ({ notification }) => notification.id },
  { title: "RESULT", value: ({ status }) => status },
  "reason",
  "attempts",
  "at",
  "opened_at",
  { title: "TITLE", value: ({ notification: { title, body } }) => title ?? body },
);

const entries = (device: Device): [string, unknown][] => [
  ...titled(device, "id", "platform", "status", "user_id", "token", "environment", "app", "topics", "metadata"),
  ...titled(device, "identifiers", "last_seen_at", "last_opened_at", "created_at", "updated_at"),
];

const filterOptions = [
  option("--match <target>", "only the active devices that a send to this target reaches, in no order"),
  option("--status <status>", "only devices with this status").choices(knownValues.deviceStatus),
  option("--platform <platform>", "only devices of this platform").choices(knownValues.platform),
  option("--user <id>", "only devices of this user"),
  option("--app <id>", "only devices that name this bundle id or package"),
  option("--push-token <token>", "only the devices with this push token"),
];

export const addDevices = (group: Command, add: Add) => {
  addImport(group, add);
  addDevicePreferences(group, add);
  type Filters = { readonly match: Target | undefined } & Record<
    "status" | "platform" | "user" | "app" | "pushToken",
    string | undefined
  >;
  add<ListChoice & TimeChoice & Filters>(group, {
    usage: "list",
    does: "List devices, newest first",
    options: [...filterOptions, ...timeOptions, ...listOptions],
    examples: [
      ["device list --all --json > devices.json", "every device, as JSON"],
      ["device list --match topic:news --all", "the devices that a send to the topic reaches"],
      ["device list --status inactive --platform android", "Android devices that get nothing"],
    ],
    run: ({ herald, rows }, _, choice) => {
      const { match, status, platform, user, app, pushToken } = choice;
      const { sort, ...range } = timeFilters(choice);
      const order = match === undefined || choice.oldestFirst ? { sort } : {};
      const filter = { match, status, platform, userId: user, app, token: pushToken, ...range, ...order };
      return rows(herald().devices.list({ ...filter }), columns, choice);
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
      const { signal } = context;
      const filter = { ...rest, userId: user, token: pushToken, ...(keys && { include: "keys" as const }), signal };
      const lines = context.herald().exports.lines("devices", format, filter);
      return exportRows(context, file, choice, lines);
    },
  });
  add(group, "get <id>", "Show a device", ({ herald, record }, [id = ""]) => record(herald().devices.get(id), entries));
  add<ListChoice>(group, {
    usage: "notifications <id>",
    does: "List a device's notifications with their results, newest first",
    options: listOptions,
    run: ({ herald, rows }, [id = ""], choice) => rows(herald().devices.notifications(id), timelineColumns, choice),
  });
  add(group, "deactivate <id>", "Stop sending to a device until it registers again", ({ herald, record }, [id = ""]) =>
    record(herald().devices.deactivate(id), entries),
  );
  addDelete(group, add, {
    usage: "delete <id>",
    does: "Delete a device",
    question: (id) => `Delete device ${id}?`,
    run: (context, id) => context.herald().devices.delete(id),
  });
};
