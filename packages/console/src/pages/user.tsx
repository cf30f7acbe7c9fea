import { keepPreviousData, useQuery, useQueryClient } from "@tanstack/react-query";
import { useNavigate, useParams } from "@tanstack/react-router";
import { useProject } from "../api/clients.ts";
import { usePollMs } from "../api/live.tsx";
import { Confirm } from "../parts/confirm.tsx";
import { List } from "../parts/list.tsx";
import { Empty, Page, Panel } from "../parts/page.tsx";
import { useSession } from "../session-context.tsx";
import { texts } from "../texts/common.ts";
import { userTexts } from "../texts/users.ts";
import { notificationColumns } from "./notifications.tsx";
import { deviceColumns } from "./trace.tsx";

const t = userTexts;

export default function UserPage() {
  const { id, herald } = useProject();
  const { session } = useSession();
  const { user = "" } = useParams({ strict: false }) as { user?: string };
  const queries = useQueryClient();
  const navigate = useNavigate();
  const pollMs = usePollMs();
  const devices = useQuery({
    queryKey: [id, "users", "one", user],
    queryFn: async ({ signal }) => ({ data: (await herald.users.get(user, { signal })).devices }),
    refetchInterval: pollMs,
  });
  const sent = useQuery({
    queryKey: [id, "notifications", "user", user],
    queryFn: ({ signal }) => herald.users.notifications(user, { signal, perPage: 25 }).page(),
    placeholderData: keepPreviousData,
    refetchInterval: pollMs,
  });
  return (
    <Page
      name={user}
      title={<span className="break">{user}</span>}
      actions={
        session.role !== "viewer" && (
          <Confirm
            label={t.erase}
            title={t.eraseTitle(user)}
            verb={t.eraseVerb}
            size="sm"
            act={() => herald.users.erase(user)}
            onDone={() => {
              void queries.invalidateQueries({ queryKey: [id] });
              void navigate({ to: `/p/${id}/users` });
            }}
          >
            {t.eraseText}
          </Confirm>
        )
      }
    >
      <div className="stack">
        <Panel flush title={texts.nav.devices}>
          <List
            query={devices}
            columns={deviceColumns(id)}
            keyOf={(row) => row.id}
            label={texts.nav.devices}
            empty={<Empty title={t.noDevices} />}
          />
        </Panel>
        <Panel flush title={t.sent}>
          <List
            query={sent}
            columns={notificationColumns(id)}
            keyOf={(row) => row.id}
            label={t.sent}
            empty={<Empty title={t.nothingSent} />}
          />
        </Panel>
      </div>
    </Page>
  );
}
