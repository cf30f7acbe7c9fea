import { Link } from "@tanstack/react-router";
import { useProject } from "../api/clients.ts";
import { TextFilter } from "../parts/filters.tsx";
import { count, Time } from "../parts/format.tsx";
import { List } from "../parts/list.tsx";
import { Page } from "../parts/page.tsx";

export default function Users() {
  const { id, herald } = useProject();
  return (
    <Page title="Users">
      <List
        label="Users"
        queryKey={[id, "users"]}
        list={(options, { prefix }) => herald.users.list({ ...options, prefix })}
        keyOf={(row) => row.user_id}
        filters={<TextFilter name="prefix" label="Id begins with" />}
        unmatched="No user ids begin with this."
        empty={{
          title: "No users yet",
          text: "Users appear here when your backend assigns them to devices, or when the app logs in with a user token.",
        }}
        columns={[
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
        ]}
      />
    </Page>
  );
}
