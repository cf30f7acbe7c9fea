import type { ExportName } from "@herald/client";
import type { Command } from "commander";
import { choices } from "../choices.ts";
import { type Add, createdOptions, option, type TimeChoice } from "../define.ts";
import { labelFilter } from "../pairs.ts";
import { type ExportChoice, exportOptions, exportRows } from "./export-rows.ts";

const notificationOption = option("--notification <id>", "only of this notification");

const exports = {
  notifications: {
    what: "every notification with its counts",
    options: [
      option("--status <status>", "only notifications with this status").choices(choices.notificationStatus),
      option("--kind <kind>", "only of this kind"),
      option("--label <name=value>", "only with this label"),
      ...createdOptions,
    ],
    example: "notification export --created-after 2030-01-01T00:00:00Z notifications.ndjson",
  },
  deliveries: {
    what: "every result of a notification for a device",
    options: [
      notificationOption,
      option("--status <status>", "only deliveries with this status").choices(choices.deliveryStatus),
      ...createdOptions,
    ],
    example: "delivery export --status failed --format csv failed.csv",
  },
  opens: {
    what: "every open: which device opened which notification, and when",
    options: [notificationOption],
    example: "open export --notification ntf_… > opens.ndjson",
  },
} as const;

type Choice = ExportChoice &
  TimeChoice & {
    readonly status?: string;
    readonly notification?: string;
    readonly kind?: string;
    readonly label?: string;
  };

export const addExport = (group: Command, add: Add, name: Exclude<ExportName, "devices">) => {
  const { what, options, example } = exports[name];
  add<Choice>(group, {
    usage: "export [file]",
    does: `Write ${what} to a file or to stdout; needs a token with the scope export`,
    options: [...exportOptions, ...options],
    examples: [[example, `${name} as a file`]],
    run: (context, [file], { format = "ndjson", label, ...rest }) => {
      const filters = { ...rest, label: label && labelFilter(label), signal: context.signal };
      return exportRows(context, file, rest, context.herald().exports.lines(name, format, filters));
    },
  });
};
