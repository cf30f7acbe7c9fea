import type { Notification, PushType } from "@herald/client";
import { knownValues } from "@herald/client/known-values";
import { Link } from "@tanstack/react-router";
import { useProject } from "../api/clients.ts";
import { useRows } from "../api/read.ts";
import { ComposeButton } from "../parts/compose-button.tsx";
import { ChoiceFilter, DayFilters, dayStart, TextFilter, useFilters } from "../parts/filters.tsx";
import { count, percent, Status, Time } from "../parts/format.tsx";
import { type Column, List } from "../parts/list.tsx";
import { Page } from "../parts/page.tsx";

const statuses = ["scheduled", "accepted", "sending", "completed", "cancelled", "expired"];

/** What a notification of a Live Activity does, which has no title of its own. */
export const activityName = ({ activity }: Pick<Notification, "activity">): string | undefined =>
  activity && `${activity.id}: ${activity.event}${activity.version === undefined ? "" : ` ${activity.version}`}`;

export const notificationColumns = (id: string): readonly Column<Notification>[] => [
  {
    title: "Message",
    cell: (row) => (
      <Link className="row-link" to={`/p/${id}/notifications/${row.id}`}>
        <b className="cut" dir="auto">
          {row.title ?? row.body ?? activityName(row) ?? "(silent)"}
        </b>
        <span className="muted cut" dir="auto">
          {row.targets.slice(0, 3).join(", ")}
          {row.targets.length > 3 && ` +${row.targets.length - 3}`}
        </span>
      </Link>
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
  const { search, page } = useFilters();
  const { status, kind, label, type, from, until } = search;
  const query = useRows([id, "notifications", { status, kind, label, type, from, until, page }], ({ signal }) =>
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
      .page(page),
  );
  return (
    <Page title="Notifications" actions={<ComposeButton project={id} />}>
      <List
        filters={
          <>
            <ChoiceFilter name="status" label="Status" values={statuses} />
            <TextFilter name="kind" label="Kind" width={110} />
            <TextFilter name="label" label="Label: campaign:spring" width={190} />
            <ChoiceFilter name="type" label="Push type" values={knownValues.pushType} />
            <DayFilters />
          </>
        }
        query={query}
        columns={notificationColumns(id)}
        keyOf={(row) => row.id}
        label="Notifications"
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
