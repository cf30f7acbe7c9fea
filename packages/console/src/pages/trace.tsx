import type { Device } from "@herald/client";
import { Stack, Text } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import { useProject } from "../api/clients.ts";
import { orNull } from "../api/problems.ts";
import { FindForm } from "../parts/field.tsx";
import { useFilters } from "../parts/filters.tsx";
import { platformNames, Status, Time } from "../parts/format.tsx";
import { Icon } from "../parts/icon.tsx";
import { type Column, IdLink, List } from "../parts/list.tsx";
import { Empty, Page, Panel } from "../parts/page.tsx";

export const deviceColumns = (project: string): readonly Column<Device>[] => [
  {
    title: "Device",
    cell: (row) => <IdLink to={`/p/${project}/devices/${row.id}`} id={row.id} />,
  },
  { title: "Platform", cell: (row) => platformNames[row.platform] ?? row.platform },
  { title: "Status", cell: (row) => <Status value={row.status} /> },
  {
    title: "User",
    cell: (row) =>
      row.user_id === null ? (
        <span className="muted">–</span>
      ) : (
        <Text component="div" maw={220} truncate>
          <Link className="link" to={`/p/${project}/users/${encodeURIComponent(row.user_id)}`}>
            {row.user_id}
          </Link>
        </Text>
      ),
  },
  {
    title: "Topics",
    wide: true,
    cell: (row) => (
      <Text maw={220} truncate>
        {row.topics.length === 0 ? <span className="muted">–</span> : row.topics.join(", ")}
      </Text>
    ),
  },
  {
    title: "Last seen",
    right: true,
    wide: true,
    cell: (row) => <Time at={row.last_seen_at ?? row.updated_at} />,
  },
];

export default function Trace() {
  const { id, herald } = useProject();
  const { search, set } = useFilters();
  const wanted = search.find ?? "";
  const read = async (): Promise<{ data: readonly Device[] }> => {
    if (wanted.startsWith("dev_")) {
      const device = await orNull(herald.devices.get(wanted));
      if (device) return { data: [device] };
    }
    const [byToken, user] = await Promise.all([
      orNull(herald.devices.list({ token: wanted }).page()),
      orNull(herald.users.get(wanted)),
    ]);
    return { data: [...(byToken?.data ?? []), ...(user?.devices ?? [])] };
  };
  return (
    <Page title="Delivery trace" about="Find a device and see why it did or did not get a notification.">
      <Stack>
        <FindForm
          label="Device id, push token or user id"
          verb="Find"
          size="md"
          leftSection={<Icon name="trace" />}
          initial={wanted}
          onFind={(find) => set({ find })}
        />
        {wanted !== "" && (
          <List
            label="Devices"
            queryKey={[id, "devices", "find"]}
            read={read}
            columns={deviceColumns(id)}
            empty={{
              title: "No device found",
              text: "Enter a complete device id or push token, or the id of a user who is logged in on a device.",
            }}
          />
        )}
        {wanted === "" && (
          <Panel>
            <Empty
              title="Which device?"
              text="Its page lists its notifications, newest first, each with a delivery trace."
            />
          </Panel>
        )}
      </Stack>
    </Page>
  );
}
