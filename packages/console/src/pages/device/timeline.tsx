import type { DeviceNotification } from "@herald/client";
import { Link, useNavigate } from "@tanstack/react-router";
import { useProject } from "../../api/clients.ts";
import { FindForm } from "../../parts/field.tsx";
import { notificationName, Status, Time } from "../../parts/format.tsx";
import { type Column, List, RowLink } from "../../parts/list.tsx";
import { Panel } from "../../parts/page.tsx";
import { Reason } from "../../parts/reason.tsx";

/** The notifications for a device, newest first: those it was sent, and why it did not get the others. */
export const Timeline = ({ device }: { readonly device: string }) => {
  const { id, herald } = useProject();
  const navigate = useNavigate();
  const trace = (notification: string) => `/p/${id}/notifications/${notification}/devices/${device}`;
  const columns: readonly Column<DeviceNotification>[] = [
    {
      title: "Message",
      cell: ({ notification }) => (
        <RowLink to={`/p/${id}/notifications/${notification.id}`} name={notificationName(notification)} />
      ),
    },
    { title: "Status", cell: (row) => <Status value={row.opened_at ? "opened" : row.status} /> },
    { title: "Reason", long: true, cell: (row) => <Reason row={row} /> },
    { title: "At", right: true, wide: true, cell: (row) => <Time at={row.opened_at ?? row.at} /> },
  ];
  return (
    <>
      <List
        label="Notifications to this device"
        queryKey={[id, "deliveries", "device", device]}
        list={(options) => herald.devices.notifications(device, options)}
        atATime={20}
        columns={columns}
        buttons={(row) => (
          <Link className="link" to={trace(row.notification.id)}>
            Why?
          </Link>
        )}
        keyOf={(row) => row.notification.id}
        empty={{ title: "Nothing has been sent to this device yet." }}
      />
      <Panel title="Why did this device not get a notification?">
        <FindForm
          label="Notification id, ntf_…"
          verb="Why?"
          variant="default"
          onFind={(notification) => void navigate({ to: trace(notification) })}
        />
      </Panel>
    </>
  );
};
