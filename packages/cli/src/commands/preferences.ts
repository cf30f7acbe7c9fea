import type { NewPreferences, Preferences } from "@herald/client";
import type { Command } from "commander";
import { type Add, option, repeatable } from "../define.ts";
import { UsageError } from "../failures.ts";

const entries = ({ kinds, quiet_hours: hours }: Preferences): [string, unknown][] => [
  ...kinds.map(({ kind, on, critical, set_by }): [string, string] => [
    kind,
    `${on ? "on" : "off"}, ${critical ? "critical" : `by ${set_by}`}`,
  ]),
  ...(hours ? [["quiet hours", `${hours.from} to ${hours.to}`] as [string, string]] : []),
];

type Choice = { readonly on?: readonly string[]; readonly off?: readonly string[]; readonly quietHours?: string };

/** Undefined: nothing is to be changed. */
const chosen = ({ on = [], off = [], quietHours }: Choice): NewPreferences | undefined => {
  if (on.length + off.length === 0 && quietHours === undefined) return undefined;
  const kinds = Object.fromEntries([...on.map((kind) => [kind, true]), ...off.map((kind) => [kind, false])]);
  if (quietHours === undefined || quietHours === "none") return { kinds };
  const [, from = "", to = ""] = /^(\d\d:\d\d)-(\d\d:\d\d)$/.exec(quietHours) ?? [];
  if (from === "") throw new UsageError(`--quiet-hours ${quietHours}: must be none, or like 22:00-07:00.`);
  return { kinds, quiet_hours: { from, to } };
};

const kinds = [
  repeatable("--on <kind>", "switch a kind on; repeatable. With any option, all choices made before are replaced"),
  repeatable("--off <kind>", "switch a kind off; repeatable"),
];

export const addDevicePreferences = (group: Command, add: Add) => {
  add<Choice>(group, {
    usage: "preferences <id>",
    does: "Show or set which kinds of notifications a device gets",
    options: kinds,
    run: ({ herald, record }, [id = ""], choice) => {
      const { devices } = herald();
      const change = chosen(choice);
      return record(change ? devices.setPreferences(id, change) : devices.preferences(id), entries);
    },
  });
};

export const addUserPreferences = (group: Command, add: Add) => {
  add<Choice>(group, {
    usage: "preferences <user>",
    does: "Show or set which kinds of notifications a user gets, and quiet hours",
    options: [...kinds, option("--quiet-hours <hours>", "when notifications wait, such as 22:00-07:00, or none")],
    run: ({ herald, record }, [id = ""], choice) => {
      const { users } = herald();
      const change = chosen(choice);
      return record(change ? users.setPreferences(id, change) : users.preferences(id), entries);
    },
  });
};
