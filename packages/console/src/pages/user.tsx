import { Stack } from "@mantine/core";
import { Link, useNavigate, useParams } from "@tanstack/react-router";
import { useState } from "react";
import { useProject } from "../api/clients.ts";
import { useRead, useRefresh, useRows } from "../api/read.ts";
import { Confirm } from "../parts/confirm.tsx";
import { Status, Time } from "../parts/format.tsx";
import { type Column, List, rowActions } from "../parts/list.tsx";
import { Note, Page } from "../parts/page.tsx";
import { Reason } from "../parts/reason.tsx";
import { RoleNote } from "../parts/role-note.tsx";
import { useMayWrite } from "../session-context.tsx";
import { activityName } from "./notifications.tsx";
import { deviceColumns } from "./trace.tsx";
import type { SentToUser } from "./user/merge-sent.ts";
import { UserPreferences } from "./user/preferences.tsx";
import { maxTimelines, readSent } from "./user/sent.ts";

const sentAtATime = 20;
/** Each read asks for the timelines of several devices. */
const sentEveryMs = 30_000;

const sentColumns = (id: string): readonly Column<SentToUser>[] => [
  {
    title: "Message",
    cell: ({ notification }) => (
      <Link className="row-link" to={`/p/${id}/notifications/${notification.id}`}>
        <b className="cut" dir="auto">
          {notification.title ?? notification.body ?? activityName(notification) ?? "(silent)"}
        </b>
      </Link>
    ),
  },
  { title: "Status", cell: ({ status }) => <Status value={status} /> },
  { title: "Reason", long: true, cell: (row) => <Reason row={row} /> },
  { title: "Created", right: true, wide: true, cell: ({ notification }) => <Time at={notification.created_at} /> },
  rowActions(
    ({ notification, device }) =>
      device && (
        <Link className="link" to={`/p/${id}/notifications/${notification.id}/devices/${device}`}>
          Why?
        </Link>
      ),
  ),
];

export default function UserPage() {
  const { id, herald } = useProject();
  const mayWrite = useMayWrite();
  const refresh = useRefresh(id);
  const { user = "" } = useParams({ strict: false }) as { user?: string };
  const navigate = useNavigate();
  const devices = useRead([id, "users", "one", user], async ({ signal }) => ({
    data: (await herald.users.get(user, { signal })).devices,
  }));
  const [limit, setLimit] = useState(sentAtATime);
  const sent = useRows(
    [id, "notifications", "user", user, limit],
    ({ signal }) => readSent(herald, user, limit, signal),
    sentEveryMs,
  );
  const others = sent.data?.others ?? 0;
  return (
    <Page
      name={user}
      title={<span className="break">{user}</span>}
      actions={
        mayWrite && (
          <Confirm
            label="Erase"
            title={`Erase ${user}?`}
            verb="Erase this user"
            size="sm"
            act={() => herald.users.erase(user)}
            onDone={() => {
              refresh();
              void navigate({ to: `/p/${id}/users` });
            }}
            about="Their devices are deleted, and the user is erased from databases within an hour and from streams within 30 days. This cannot be undone."
          />
        )
      }
    >
      <RoleNote needs="operator" can="change anything here and see preferences" />
      <Stack>
        <List
          query={devices}
          columns={deviceColumns(id).filter(({ title }) => title !== "User")}
          keyOf={(row) => row.id}
          label="Devices"
          empty={{ title: "This user is not logged in on any device." }}
        />
        {mayWrite && <UserPreferences user={user} />}
        <List
          query={sent}
          columns={sentColumns(id)}
          keyOf={({ notification }) => notification.id}
          label="Sent to this user"
          empty={{ title: "Nothing has been sent to this user yet." }}
          onMore={sent.data?.more ? () => setLimit(limit + sentAtATime) : undefined}
        >
          {others > 0 && (
            <Note className="inside" display="block">
              What went to their {maxTimelines} devices that were seen last. The page of each device has the rest.
            </Note>
          )}
        </List>
      </Stack>
    </Page>
  );
}
