import type { Delivery, Notification } from "@herald/client";
import { Button, Progress } from "@mantine/core";
import { keepPreviousData, useQuery, useQueryClient } from "@tanstack/react-query";
import { Link, useNavigate, useParams } from "@tanstack/react-router";
import { useProject } from "../api/clients.ts";
import { usePollMs } from "../api/live.tsx";
import { useProjectName } from "../api/projects.ts";
import { Confirm } from "../parts/confirm.tsx";
import { ChoiceFilter, useFilters } from "../parts/filters.tsx";
import { count, duration, exactTime, percent, platformNames, Status, Time } from "../parts/format.tsx";
import { type Column, List } from "../parts/list.tsx";
import { LockScreen } from "../parts/lock-screen.tsx";
import { Copyable, Empty, Facts, Page, Panel, Problem } from "../parts/page.tsx";
import { useSession } from "../session-context.tsx";
import { texts } from "../texts/common.ts";
import { composeTexts } from "../texts/compose.ts";
import { notificationTexts } from "../texts/notifications.ts";
import { emptyDraft, saveDraft } from "./compose/draft.ts";

const t = notificationTexts;
const final = ["completed", "cancelled", "expired"];

const Funnel = ({ notification }: { readonly notification: Notification }) => {
  const { counts } = notification;
  const bars = [
    { name: t.devices, value: counts.devices, color: "var(--muted)", note: "" },
    {
      name: t.accepted,
      value: counts.accepted,
      color: "var(--good)",
      note: counts.devices ? percent(counts.accepted / counts.devices) : "",
    },
    {
      name: t.opened,
      value: counts.opened,
      color: "var(--open)",
      note: counts.accepted ? `${percent(counts.opened / counts.accepted)} ${t.funnelOf}` : "",
    },
  ];
  const rest = (["failed", "skipped", "expired", "cancelled", "pending"] as const).filter((name) => counts[name] > 0);
  return (
    <div className="stack">
      <ul className="funnel">
        {bars.map(({ name, value, color, note }) => (
          <li key={name}>
            <span>{name}</span>
            <span className="bar">
              <i style={{ width: `${counts.devices ? (value / counts.devices) * 100 : 0}%`, background: color }} />
            </span>
            <b className="right">{count(value)}</b>
            <span className="muted small">{note}</span>
          </li>
        ))}
      </ul>
      {rest.length > 0 && (
        <div className="toolbar small">
          {rest.map((name) => (
            <span key={name} className={name === "failed" ? "bad" : "muted"}>
              <b>{count(counts[name])}</b> {t[name].toLowerCase()}
            </span>
          ))}
        </div>
      )}
    </div>
  );
};

const Reasons = ({ notification }: { readonly notification: Notification }) => {
  const rows = [
    ...Object.entries(notification.failures).map(([reason, devices]) => ({ reason, devices, status: "failed" })),
    ...Object.entries(notification.skips).map(([reason, devices]) => ({ reason, devices, status: "skipped" })),
  ].toSorted((one, other) => other.devices - one.devices);
  if (rows.length === 0) return <p className="muted text">{t.noReasons}</p>;
  return (
    <ul className="reasons">
      {rows.map(({ reason, devices, status }) => (
        <li key={`${status}/${reason}`}>
          <a className="link mono" href={`/docs/errors#${reason}`} target="_blank" rel="noreferrer">
            {reason}
          </a>
          <span className="muted small grow">{status}</span>
          <b>{count(devices)}</b>
        </li>
      ))}
    </ul>
  );
};

const Deliveries = ({ notification }: { readonly notification: string }) => {
  const { id, herald } = useProject();
  const { search, page, setPage } = useFilters();
  const { status } = search;
  const query = useQuery({
    queryKey: [id, "deliveries", notification, status, page],
    queryFn: ({ signal }) => herald.notifications.deliveries(notification, { signal, perPage: 25, status }).page(page),
    placeholderData: keepPreviousData,
    refetchInterval: usePollMs(),
  });
  const columns: readonly Column<Delivery>[] = [
    {
      title: t.device,
      cell: (row) => (
        <Link className="link mono" to={`/p/${id}/notifications/${notification}/devices/${row.device_id}`}>
          {row.device_id}
        </Link>
      ),
    },
    { title: t.platform, cell: (row) => platformNames[row.platform] ?? row.platform },
    { title: t.status, cell: (row) => <Status value={row.opened_at ? "opened" : row.status} /> },
    {
      title: t.reason,
      cell: (row) => (
        <span className="break">
          {row.reason} {row.provider_reason && <span className="muted">{row.provider_reason}</span>}
        </span>
      ),
    },
    { title: t.attempts, right: true, wide: true, cell: (row) => row.attempts },
    { title: t.at, right: true, wide: true, cell: (row) => <Time at={row.opened_at ?? row.at} /> },
  ];
  return (
    <Panel
      flush
      title={t.deliveries}
      actions={
        <ChoiceFilter
          name="status"
          label={t.status}
          values={["accepted", "failed", "pending", "skipped", "expired", "cancelled"]}
        />
      }
    >
      <List
        query={query}
        columns={columns}
        keyOf={(row) => row.device_id}
        label={t.deliveries}
        onPage={setPage}
        empty={<Empty title={status ? t.noDeliveriesFiltered : t.noDeliveries} />}
      />
    </Panel>
  );
};

export default function NotificationPage() {
  const { id, herald } = useProject();
  const { session } = useSession();
  const { notification: ntf = "" } = useParams({ strict: false }) as { notification?: string };
  const queries = useQueryClient();
  const navigate = useNavigate();
  const pollMs = usePollMs();
  const app = useProjectName();
  const { data, error, refetch } = useQuery({
    queryKey: [id, "notifications", ntf],
    queryFn: ({ signal }) => herald.notifications.get(ntf, { signal }),
    refetchInterval: ({ state }) => (state.data && final.includes(state.data.status) ? pollMs : 1_500),
  });
  if (!data)
    return (
      <Page title={texts.nav.notifications} name={texts.nav.notifications}>
        {error && <Problem error={error} onRetry={() => void refetch()} />}
      </Page>
    );
  const { counts, opens } = data;
  const isFinal = final.includes(data.status);
  const done = counts.devices - counts.pending;
  const begun = Date.parse(data.send_at ?? data.created_at);
  const seconds = ((data.completed_at ? Date.parse(data.completed_at) : Date.now()) - begun) / 1_000;
  const name = data.title ?? data.body ?? t.silent;
  const asDraft = () => {
    saveDraft(id, {
      ...emptyDraft,
      title: data.title ?? "",
      body: data.body ?? "",
      image: data.image ?? "",
      link: data.link_to ?? "",
      targets: data.targets,
    });
    void navigate({ to: `/p/${id}/compose` });
  };
  return (
    <Page
      name={name}
      title={
        <span className="title-line">
          <span className="cut" dir="auto">
            {name}
          </span>
          <Status value={data.status} />
        </span>
      }
      actions={
        <>
          <Button variant="default" onClick={asDraft}>
            {t.duplicate}
          </Button>
          {!isFinal && session.role !== "viewer" && (
            <Confirm
              label={t.cancel}
              title={t.cancelTitle}
              verb={t.cancelVerb}
              size="sm"
              act={() => herald.notifications.cancel(ntf)}
              onDone={() => void queries.invalidateQueries({ queryKey: [id] })}
            >
              {t.cancelText}
            </Confirm>
          )}
        </>
      }
    >
      <div className="stack">
        {error && <Problem error={error} onRetry={() => void refetch()} />}
        {!isFinal && counts.devices > 0 && (
          <div className="panel inside" role="status">
            <Progress
              value={(done / counts.devices) * 100}
              animated
              aria-label={t.progress(count(done), count(counts.devices))}
            />
            <span className="muted small">{t.progress(count(done), count(counts.devices))}</span>
          </div>
        )}
        <div className="columns wide">
          <div className="stack">
            <Panel title={t.funnel}>
              <Funnel notification={data} />
            </Panel>
            <Panel title={t.reasons}>
              <Reasons notification={data} />
            </Panel>
          </div>
          <div className="stack">
            <Panel title={t.content}>
              <div className="stack">
                <LockScreen
                  platform="web"
                  app={app}
                  shown={{ title: data.title, body: data.body, image: data.image, link: data.link_to }}
                />
                <Facts
                  facts={[
                    [texts.common.id, <Copyable key="id" value={data.id} />],
                    [
                      t.targets,
                      <span key="t" className="mono">
                        {data.targets.slice(0, 20).join(", ")}
                      </span>,
                    ],
                    data.unmatched.length > 0 && [
                      t.unmatched,
                      <span key="u" className="warn mono">
                        {data.unmatched.join(", ")}
                      </span>,
                    ],
                    data.link_to !== undefined && [composeTexts.link, data.link_to],
                    data.send_at !== undefined && [t.scheduled, exactTime(data.send_at)],
                    [t.created, exactTime(data.created_at)],
                    data.completed_at !== undefined && [t.took, duration(seconds)],
                    counts.accepted > 0 &&
                      seconds > 0 && [
                        t.speed,
                        t.perSecond(count(Math.max(1, Math.round(done / Math.max(seconds, 0.05))))),
                      ],
                    opens?.first_opened_at !== undefined && [t.firstOpen, <Time key="f" at={opens.first_opened_at} />],
                    opens?.time_to_open !== undefined && [t.timeToOpen, duration(opens.time_to_open.p50)],
                  ]}
                />
              </div>
            </Panel>
          </div>
        </div>
        <Deliveries notification={ntf} />
      </div>
    </Page>
  );
}
