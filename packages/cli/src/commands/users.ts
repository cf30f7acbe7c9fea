import type { UserSummary } from "@herald/client";
import type { Command } from "commander";
import type { ListChoice } from "../context.ts";
import { type Add, listOptions, type TimeChoice, timeOptions, timeRange, yesOption } from "../define.ts";
import { notificationColumns } from "./notifications.ts";

const columns = [
  { title: "USER", value: ({ user_id }: UserSummary) => user_id },
  { title: "DEVICES", value: ({ device_count }: UserSummary) => device_count, right: true },
  { title: "LAST SEEN", value: ({ last_seen_at }: UserSummary) => last_seen_at },
];

export const addUsers = (group: Command, add: Add) => {
  add<ListChoice>(group, {
    usage: "list",
    does: "List the users who have devices",
    options: listOptions,
    run: ({ herald, signal, rows }, _, choice) => rows(herald().users.list({ signal }), columns, choice),
  });
  add(group, {
    usage: "get <user>",
    does: "Show a user's devices",
    run: async ({ herald, signal, record }, [id = ""]) => {
      const user = await herald().users.get(id, { signal });
      record(user, [
        ["user", user.user_id],
        ["last seen", user.last_seen_at],
        ["devices", user.device_count],
        ...user.devices.map((device): [string, string] => ["", `${device.id} ${device.platform} ${device.status}`]),
      ]);
    },
  });
  add<ListChoice & TimeChoice>(group, {
    usage: "notifications <user>",
    does: "List what was sent to a user, newest first",
    options: [...timeOptions, ...listOptions],
    run: ({ herald, signal, rows }, [id = ""], choice) =>
      rows(herald().users.notifications(id, { ...timeRange(choice), signal }), notificationColumns, choice),
  });
  add<{ yes?: boolean }>(group, {
    usage: "erase <user>",
    does: "Erase a user and their devices everywhere",
    options: [yesOption],
    run: async ({ herald, signal, record, confirm }, [id = ""], { yes }) => {
      await confirm(`Erase user ${id}, with all their devices?`, yes);
      const erasure = await herald().users.erase(id, { signal });
      record(erasure, [
        ["user", erasure.user_id],
        ["erased", erasure.erased_at],
        ["databases", erasure.databases],
        ["streams", erasure.streams],
        ["backups", erasure.backups],
      ]);
    },
  });
};
