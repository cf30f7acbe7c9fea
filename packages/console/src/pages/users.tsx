import type { UserSummary } from "@herald/client";
import { Link } from "@tanstack/react-router";
import { useProject } from "../api/clients.ts";
import { useFirstRows } from "../api/read.ts";
import { TextFilter, useFilters } from "../parts/filters.tsx";
import { count, Time } from "../parts/format.tsx";
import { type Column, List } from "../parts/list.tsx";
import { Page } from "../parts/page.tsx";

export default function Users() {
  const { id, herald } = useProject();
  const { search } = useFilters();
  const { prefix } = search;
  const users = useFirstRows([id, "users", prefix], (options) => herald.users.list({ ...options, prefix }), 50);
  const columns: readonly Column<UserSummary>[] = [
    {
      title: "User",
      cell: (row) => (
        <Link className="link break" to={`/p/${id}/users/${encodeURIComponent(row.user_id)}`}>
          {row.user_id}
        </Link>
      ),
    },
    { title: "Devices", right: true, cell: (row) => count(row.device_count) },
    { title: "Last seen", right: true, cell: (row) => <Time at={row.last_seen_at} /> },
  ];
  return (
    <Page title="Users">
      <List
        filters={<TextFilter name="prefix" label="Id begins with" />}
        {...users}
        columns={columns}
        keyOf={(row) => row.user_id}
        label="Users"
        unmatched="No user ids begin with this."
        empty={{
          title: "No users yet",
          text: "Users appear here when your backend assigns them to devices, or when the app logs in with a user token.",
        }}
      />
    </Page>
  );
}
