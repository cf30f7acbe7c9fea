import type { UserSummary } from "@herald/client";
import { Button, TextInput } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { Link, useNavigate } from "@tanstack/react-router";
import { type FormEvent, useState } from "react";
import { useProject } from "../api/clients.ts";
import { usePollMs } from "../api/live.tsx";
import { firstRows } from "../api/rows.ts";
import { count, Time } from "../parts/format.tsx";
import { type Column, List } from "../parts/list.tsx";
import { Empty, Page, Panel } from "../parts/page.tsx";
import { texts } from "../texts/common.ts";
import { deviceTexts } from "../texts/devices.ts";
import { userTexts } from "../texts/users.ts";

const t = userTexts;

export default function Users() {
  const { id, herald } = useProject();
  const navigate = useNavigate();
  const [limit, setLimit] = useState(50);
  const [typed, setTyped] = useState("");
  const query = useQuery({
    queryKey: [id, "users", limit],
    queryFn: ({ signal }) => firstRows<UserSummary>(herald.users.list({ signal, perPage: 50 }), limit),
    refetchInterval: usePollMs(),
  });
  const columns: readonly Column<UserSummary>[] = [
    {
      title: t.user,
      cell: (row) => (
        <Link className="link break" to={`/p/${id}/users/${encodeURIComponent(row.user_id)}`}>
          {row.user_id}
        </Link>
      ),
    },
    { title: texts.nav.devices, right: true, cell: (row) => count(row.device_count) },
    { title: deviceTexts.lastSeen, right: true, cell: (row) => <Time at={row.last_seen_at} /> },
  ];
  const find = (event: FormEvent) => {
    event.preventDefault();
    void navigate({ to: `/p/${id}/users/${encodeURIComponent(typed.trim())}` });
  };
  return (
    <Page title={texts.nav.users} name={texts.nav.users}>
      <Panel
        flush
        filters={
          <form className="find" onSubmit={find}>
            <TextInput
              size="xs"
              aria-label={t.find}
              placeholder={t.find}
              value={typed}
              onChange={(event) => setTyped(event.currentTarget.value)}
            />
            <Button type="submit" size="xs" variant="default" disabled={typed.trim() === ""}>
              {t.open}
            </Button>
          </form>
        }
      >
        <List
          query={query}
          columns={columns}
          keyOf={(row) => row.user_id}
          label={texts.nav.users}
          empty={<Empty title={t.emptyTitle}>{t.empty}</Empty>}
        />
        {query.data?.more && (
          <div className="pager">
            <Button size="compact-sm" variant="default" onClick={() => setLimit(limit + 100)}>
              {texts.common.more}
            </Button>
          </div>
        )}
      </Panel>
    </Page>
  );
}
