import type { Preferences } from "@herald/client";
import { useProject } from "../../api/clients.ts";
import { Status } from "../../parts/format.tsx";
import { type Column, List } from "../../parts/list.tsx";
import { Note } from "../../parts/page.tsx";

const setBy: Readonly<Record<string, string>> = {
  user: "the user",
  device: "the device",
  default: "the kind’s default",
};

const columns: readonly Column<Preferences["kinds"][number]>[] = [
  {
    title: "Kind",
    cell: ({ kind, title }) => (
      <span className="break">
        {title} <span className="muted mono">{kind}</span>
      </span>
    ),
  },
  { title: "Gets it", cell: ({ on }) => <Status value={on ? "on" : "off"} /> },
  {
    title: "Set by",
    right: true,
    cell: (row) => (row.critical ? "critical: always on" : (setBy[row.set_by] ?? row.set_by)),
  },
];

/** Which kinds the user gets, and the user's quiet hours. The user changes them in the app. */
export const UserPreferences = ({ user }: { readonly user: string }) => {
  const { id, herald } = useProject();
  return (
    <List
      label="Preferences"
      queryKey={[id, "users", "preferences", user]}
      read={async ({ signal }) => {
        const { kinds, quiet_hours: hours } = await herald.users.preferences(user, { signal });
        return { data: kinds, hours };
      }}
      columns={columns}
      keyOf={({ kind }) => kind}
      empty={{ title: "This project declares no kinds, so there is nothing to switch off." }}
    >
      {({ hours }) => (
        <Note display="block" px="md" py={14}>
          {hours
            ? `Quiet hours: ${hours.from}–${hours.to}, in the time zone of each device.`
            : "No quiet hours of their own."}
        </Note>
      )}
    </List>
  );
};
