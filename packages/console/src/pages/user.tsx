import { Stack } from "@mantine/core";
import { useNavigate, useParams } from "@tanstack/react-router";
import { useProject } from "../api/clients.ts";
import { useRead, useRefresh, useRows } from "../api/read.ts";
import { Confirm } from "../parts/confirm.tsx";
import { List } from "../parts/list.tsx";
import { Page } from "../parts/page.tsx";
import { RoleNote } from "../parts/role-note.tsx";
import { useMayWrite } from "../session-context.tsx";
import { notificationColumns } from "./notifications.tsx";
import { deviceColumns } from "./trace.tsx";

export default function UserPage() {
  const { id, herald } = useProject();
  const mayWrite = useMayWrite();
  const refresh = useRefresh(id);
  const { user = "" } = useParams({ strict: false }) as { user?: string };
  const navigate = useNavigate();
  const devices = useRead([id, "users", "one", user], async ({ signal }) => ({
    data: (await herald.users.get(user, { signal })).devices,
  }));
  const sent = useRows([id, "notifications", "user", user], async ({ signal }) => ({
    data: (await herald.users.notifications(user, { signal, perPage: 25 }).page()).data,
  }));
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
      <RoleNote needs="operator" can="change anything here" />
      <Stack>
        <List
          query={devices}
          columns={deviceColumns(id)}
          keyOf={(row) => row.id}
          label="Devices"
          empty={{ title: "This user is not logged in on any device." }}
        />
        <List
          query={sent}
          columns={notificationColumns(id)}
          keyOf={(row) => row.id}
          label="Sent to this user"
          empty={{ title: "Nothing has been sent to user:<id> yet." }}
        />
      </Stack>
    </Page>
  );
}
