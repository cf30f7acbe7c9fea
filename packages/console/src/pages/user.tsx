import { Stack } from "@mantine/core";
import { Link, useNavigate, useParams } from "@tanstack/react-router";
import { useProject } from "../api/clients.ts";
import { Confirm } from "../parts/form.tsx";
import { notificationName, Status, Time } from "../parts/format.tsx";
import { type Column, List, RowLink } from "../parts/list.tsx";
import { Note, Page } from "../parts/page.tsx";
import { Reason } from "../parts/reason.tsx";
import { useMayWrite } from "../session-context.tsx";
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
      <RowLink to={`/p/${id}/notifications/${notification.id}`} name={notificationName(notification)} />
    ),
  },
  { title: "Status", cell: ({ status }) => <Status value={status} /> },
  { title: "Reason", long: true, cell: (row) => <Reason row={row} /> },
  { title: "Created", right: true, wide: true, cell: ({ notification }) => <Time at={notification.created_at} /> },
];

export default function UserPage() {
  const { id, herald } = useProject();
  const mayWrite = useMayWrite();
  const { user = "" } = useParams({ strict: false }) as { user?: string };
  const navigate = useNavigate();
  return (
    <Page
      name={user}
      title={<span className="break">{user}</span>}
      role={{ needs: "operator", can: "change anything here and see preferences" }}
      actions={
        mayWrite && (
          <Confirm
            label="Erase"
            title={`Erase ${user}?`}
            verb="Erase this user"
            button={{ size: "sm" }}
            act={() => herald.users.erase(user)}
            onDone={() => void navigate({ to: `/p/${id}/users` })}
            about="Their devices are deleted, and the user is erased from databases within an hour and from streams within 30 days. This cannot be undone."
          />
        )
      }
    >
      <Stack>
        <List
          label="Devices"
          queryKey={[id, "users", "one", user]}
          read={async ({ signal }) => ({ data: (await herald.users.get(user, { signal })).devices })}
          columns={deviceColumns(id).filter(({ title }) => title !== "User")}
          empty={{ title: "This user is not logged in on any device." }}
        />
        {mayWrite && <UserPreferences user={user} />}
        <List
          label="Sent to this user"
          queryKey={[id, "notifications", "user", user]}
          read={({ signal, limit }) => readSent(herald, user, limit, signal)}
          atATime={sentAtATime}
          everyMs={sentEveryMs}
          columns={sentColumns(id)}
          buttons={({ notification, device }) =>
            device && (
              <Link className="link" to={`/p/${id}/notifications/${notification.id}/devices/${device}`}>
                Why?
              </Link>
            )
          }
          keyOf={({ notification }) => notification.id}
          empty={{ title: "Nothing has been sent to this user yet." }}
        >
          {({ others }) =>
            others > 0 && (
              <Note display="block" px="md" py={14}>
                What went to their {maxTimelines} devices that were seen last. The page of each device has the rest.
              </Note>
            )
          }
        </List>
      </Stack>
    </Page>
  );
}
