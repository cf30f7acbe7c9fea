import type { Notification } from "@herald/client";
import { Button } from "@mantine/core";
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useProject } from "../api/clients.ts";
import { usePollMs } from "../api/live.tsx";
import { ChoiceFilter, dayStart, TextFilter, useFilters } from "../parts/filters.tsx";
import { count, percent, Status, Time } from "../parts/format.tsx";
import { Icon } from "../parts/icon.tsx";
import { type Column, List } from "../parts/list.tsx";
import { Empty, Page, Panel } from "../parts/page.tsx";
import { texts } from "../texts/common.ts";
import { notificationTexts } from "../texts/notifications.ts";

const t = notificationTexts;
const statuses = ["scheduled", "accepted", "sending", "completed", "cancelled", "expired"];

const ComposeButton = ({ project }: { readonly project: string }) => (
  <Button component={Link} to={`/p/${project}/compose`} leftSection={<Icon name="compose" size={16} />}>
    {t.new}
  </Button>
);

export const notificationColumns = (id: string): readonly Column<Notification>[] => [
  {
    title: t.message,
    cell: (row) => (
      <Link className="row-link" to={`/p/${id}/notifications/${row.id}`}>
        <b className="cut" dir="auto">
          {row.title ?? row.body ?? t.silent}
        </b>
        <span className="muted cut" dir="auto">
          {row.targets.slice(0, 3).join(", ")}
          {row.targets.length > 3 && ` +${row.targets.length - 3}`}
        </span>
      </Link>
    ),
  },
  { title: t.status, cell: (row) => <Status value={row.status} /> },
  { title: t.devices, right: true, cell: (row) => count(row.counts.devices) },
  { title: t.accepted, right: true, wide: true, cell: (row) => count(row.counts.accepted) },
  {
    title: t.failed,
    right: true,
    wide: true,
    cell: (row) => <span className={row.counts.failed > 0 ? "bad" : "muted"}>{count(row.counts.failed)}</span>,
  },
  {
    title: t.opened,
    right: true,
    wide: true,
    cell: (row) => (
      <>
        {count(row.counts.opened)}{" "}
        <span className="muted">{row.counts.accepted > 0 && percent(row.counts.opened / row.counts.accepted)}</span>
      </>
    ),
  },
  { title: t.created, right: true, cell: (row) => <Time at={row.send_at ?? row.created_at} /> },
];

export default function Notifications() {
  const { id, herald } = useProject();
  const { search, page, setPage } = useFilters();
  const pollMs = usePollMs();
  const { status, kind, label, from, until } = search;
  const query = useQuery({
    queryKey: [id, "notifications", { status, kind, label, from, until, page }],
    queryFn: ({ signal }) =>
      herald.notifications
        .list({
          signal,
          perPage: 25,
          sort: "-created_at",
          status,
          kind,
          label,
          createdAfter: dayStart(from),
          createdBefore: dayStart(until, 1),
        })
        .page(page),
    placeholderData: keepPreviousData,
    refetchInterval: pollMs,
  });
  const filtered = Boolean(status || kind || label || from || until);
  return (
    <Page title={texts.nav.notifications} name={texts.nav.notifications} actions={<ComposeButton project={id} />}>
      <Panel
        flush
        filters={
          <>
            <ChoiceFilter name="status" label={t.status} values={statuses} />
            <TextFilter name="kind" label={t.kind} width={110} />
            <TextFilter name="label" label={t.label} width={190} />
            <TextFilter name="from" label={t.since} type="date" width={172} />
            <TextFilter name="until" label={t.until} type="date" width={172} />
          </>
        }
      >
        <List
          query={query}
          columns={notificationColumns(id)}
          keyOf={(row) => row.id}
          label={texts.nav.notifications}
          onPage={setPage}
          empty={
            filtered ? (
              <Empty title={t.emptyFiltered} />
            ) : (
              <Empty title={t.emptyTitle} action={<ComposeButton project={id} />}>
                {t.empty}
              </Empty>
            )
          }
        />
      </Panel>
    </Page>
  );
}
