import type { Notification, PushType } from "@herald/client";
import { knownValues } from "@herald/client/known-values";
import { useProject } from "../api/clients.ts";
import { ComposeButton } from "../parts/compose-button.tsx";
import { ChoiceFilter, DayFilters, dayStart, TextFilter } from "../parts/filters.tsx";
import { count, notificationName, percent, Status, Time } from "../parts/format.tsx";
import { type Column, List, RowLink } from "../parts/list.tsx";
import { Page } from "../parts/page.tsx";

const statuses = ["proposed", "scheduled", "accepted", "sending", "paused", "completed", "cancelled", "expired"];

const notificationColumns = (id: string): readonly Column<Notification>[] => [
  {
    title: "Message",
    cell: (row) => (
      <RowLink
        to={`/p/${id}/notifications/${row.id}`}
        name={notificationName(row)}
        note={[row.targets.slice(0, 3).join(", "), row.targets.length > 3 && `+${row.targets.length - 3}`]
          .filter(Boolean)
          .join(" ")}
      />
    ),
  },
  { title: "Status", cell: (row) => <Status value={row.status} counts={row.counts} /> },
  { title: "Devices", right: true, wide: true, cell: (row) => count(row.counts.devices) },
  { title: "Accepted", right: true, wide: true, cell: (row) => count(row.counts.accepted) },
  {
    title: "Failed",
    right: true,
    wide: true,
    cell: (row) => <span className={row.counts.failed > 0 ? "bad" : "muted"}>{count(row.counts.failed)}</span>,
  },
  {
    title: "Opened",
    right: true,
    wide: true,
    cell: (row) => (
      <>
        {count(row.counts.opened)}{" "}
        <span className="muted">{row.counts.accepted > 0 && percent(row.counts.opened / row.counts.accepted)}</span>
      </>
    ),
  },
  { title: "Created", right: true, cell: (row) => <Time at={row.send_at ?? row.created_at} /> },
];

export default function Notifications() {
  const { id, herald } = useProject();
  return (
    <Page title="Notifications" actions={<ComposeButton project={id} />}>
      <List
        label="Notifications"
        queryKey={[id, "notifications", "list"]}
        read={({ signal, page }, { status, kind, label, type, from, until }) =>
          herald.notifications
            .list({
              signal,
              perPage: 25,
              sort: "-created_at",
              status,
              kind,
              label,
              push_type: type as PushType | undefined,
              createdAfter: dayStart(from),
              createdBefore: dayStart(until, 1),
            })
            .page(page)
        }
        filters={
          <>
            <ChoiceFilter name="status" label="Status" values={statuses} />
            <TextFilter name="kind" label="Kind" width={110} />
            <TextFilter name="label" label="Label: campaign:spring" width={190} />
            <ChoiceFilter name="type" label="Push type" values={knownValues.pushType} />
            <DayFilters />
          </>
        }
        columns={notificationColumns(id)}
        unmatched="No notifications match these filters."
        empty={{
          title: "No notifications yet",
          text: "Compose one. Before you send it, you see how many devices get it and what it looks like.",
          action: <ComposeButton project={id} />,
        }}
      />
    </Page>
  );
}
