import type { UserSummary } from "@herald/client";
import type { Command } from "commander";
import type { ListChoice } from "../context.ts";
import { type Add, listOptions, type TimeChoice, timeFilters, timeOptions, yesOption } from "../define.ts";
import { columnsFor, titled } from "../terminal/table.ts";
import { notificationTable } from "./notifications.ts";
import { addUserPreferences } from "./preferences.ts";

const columns = columnsFor<UserSummary>(
  "user_id",
  { title: "DEVICES", value: ({ device_count }) => device_count, right: true },
  "last_seen_at",
);

export const addUsers = (group: Command, add: Add) => {
  add<ListChoice>(group, {
    usage: "list",
    does: "List the users who have devices",
    options: listOptions,
    run: ({ herald, rows }, _, choice) => rows(herald().users.list(), columns, choice),
  });
  add(group, "get <user>", "Show a user's devices", ({ herald, record }, [id = ""]) =>
    record(herald().users.get(id), (user) => [
      ...titled(user, "user_id", "last_seen_at"),
      ["devices", user.device_count],
      ...user.devices.map((device): [string, string] => ["", `${device.id} ${device.platform} ${device.status}`]),
    ]),
  );
  addUserPreferences(group, add);
  add<ListChoice & TimeChoice>(group, {
    usage: "notifications <user>",
    does: "List a user's notifications, newest first",
    options: [...timeOptions, ...listOptions],
    run: ({ herald, rows }, [id = ""], choice) =>
      rows(herald().users.notifications(id, { ...timeFilters(choice) }), notificationTable, choice),
  });
  add<{ yes?: boolean }>(group, {
    usage: "erase <user>",
    does: "Erase a user and their devices everywhere",
    options: [yesOption],
    run: async ({ herald, record, confirm }, [id = ""], { yes }) => {
      await confirm(`Erase user ${id}, with all their devices?`, yes);
      await record(herald().users.erase(id), (erasure) =>
        titled(erasure, "user_id", "erased_at", "databases", "streams", "backups"),
      );
    },
  });
};
