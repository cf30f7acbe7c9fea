import { Button, Progress, SegmentedControl, Skeleton } from "@mantine/core";
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { useProject } from "../api/clients.ts";
import { useLive, usePollMs } from "../api/live.tsx";
import { count, percent, Status, Time } from "../parts/format.tsx";
import { Icon } from "../parts/icon.tsx";
import { Page, Panel, Problem } from "../parts/page.tsx";
import { texts } from "../texts/common.ts";
import { notificationTexts } from "../texts/notifications.ts";
import { overviewTexts } from "../texts/overview.ts";
import { Attention, useProviders } from "./overview/attention.tsx";
import { useLatest } from "./overview/latest.ts";
import { Plot } from "./overview/plot.tsx";

const t = overviewTexts;

const ranges = {
  day: { hours: 24, interval: "hour" },
  week: { hours: 168, interval: "hour" },
  month: { hours: 720, interval: "day" },
} as const;
type Range = keyof typeof ranges;

const Statistics = () => {
  const { id, herald } = useProject();
  const [range, setRange] = useState<Range>("day");
  const pollMs = usePollMs();
  const live = useLive();
  const { data, error, refetch } = useQuery({
    queryKey: [id, "stats", range],
    queryFn: ({ signal }) => {
      const { hours, interval } = ranges[range];
      const from = new Date(Date.now() - hours * 3_600_000).toISOString();
      const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
      return herald.stats({ from, interval, time_zone: zone }, { signal });
    },
    placeholderData: keepPreviousData,
    refetchInterval: pollMs,
  });
  const totals = data?.totals;
  const figures = [
    { name: t.sent, value: totals && count(totals.sent), color: "good" },
    { name: t.opened, value: totals && count(totals.opened), color: "open" },
    { name: t.openRate, value: totals && percent(totals.open_rate) },
    { name: t.failed, value: totals && count(totals.failed), color: totals && totals.failed > 0 ? "bad" : "" },
  ];
  return (
    <Panel
      title={
        <span className="with-icon">
          {t.traffic}
          <span className={live ? "live good" : "live muted"}>
            <i className="dot" /> {live ? t.live : t.polling}
          </span>
        </span>
      }
      flush
      actions={
        <SegmentedControl
          size="xs"
          aria-label={t.range}
          value={range}
          onChange={(value) => setRange(value as Range)}
          data={(Object.keys(ranges) as Range[]).map((value) => ({ value, label: t.ranges[value] }))}
        />
      }
    >
      {error && (
        <div className="inside">
          <Problem error={error} onRetry={() => void refetch()} />
        </div>
      )}
      <div className="figures square">
        {figures.map(({ name, value, color }) => (
          <div key={name} className="figure">
            <span>{name}</span>
            {value === undefined ? <Skeleton height={24} width={60} mt={6} /> : <b className={color}>{value}</b>}
          </div>
        ))}
      </div>
      <div className="plot-place">{data ? <Plot stats={data} /> : <Skeleton height={240} />}</div>
    </Panel>
  );
};

/** The steps from an empty project to its first push. */
const FirstSteps = () => {
  const { id, herald } = useProject();
  const providers = useProviders();
  const devices = useQuery({
    queryKey: [id, "devices", "any"],
    queryFn: () => herald.devices.list({ perPage: 1 }).page(),
    refetchInterval: 3_000,
  });
  const sent = useQuery({
    queryKey: [id, "notifications", "any"],
    queryFn: () => herald.notifications.list({ perPage: 1 }).page(),
    refetchInterval: 3_000,
  });
  if (!devices.data || !sent.data || providers.some(({ data }) => data === undefined)) return null;
  const steps = [
    {
      done: providers.some(({ data }) => data),
      text: t.steps.provider,
      hint: t.steps.providerHint,
      to: `/p/${id}/settings/providers`,
    },
    { done: devices.data.pagination.count > 0, text: t.steps.device, hint: t.steps.deviceHint, to: `/p/${id}/devices` },
    { done: sent.data.pagination.count > 0, text: t.steps.send, hint: t.steps.sendHint, to: `/p/${id}/compose` },
  ];
  if (steps.every(({ done }) => done)) return null;
  return (
    <Panel title={t.steps.title}>
      <ol className="steps">
        {steps.map(({ done, text, hint, to }, index) => (
          <li key={text} className={done ? "done" : ""}>
            <span className="step-number">{done ? <Icon name="check" size={14} /> : index + 1}</span>
            <div>
              <Link className="link" to={to}>
                {text}
              </Link>
              <div className="muted small">{hint}</div>
            </div>
          </li>
        ))}
      </ol>
    </Panel>
  );
};

const Running = () => {
  const { id } = useProject();
  const query = useLatest();
  const running =
    query.data?.filter(({ status }) => ["sending", "accepted", "scheduled", "paused"].includes(status)) ?? [];
  const rows = running.length > 0 ? running.slice(0, 8) : (query.data?.slice(0, 5) ?? []);
  return (
    <Panel title={running.length > 0 ? t.running : t.latest}>
      {query.error && <Problem error={query.error} />}
      {query.data?.length === 0 && <p className="muted text">{t.nothing}</p>}
      <ul className="plain-list">
        {rows.map(({ id: ntf, title, body, status, counts, send_at, created_at }) => (
          <li key={ntf} className="running">
            <Link to={`/p/${id}/notifications/${ntf}`} className="link cut" dir="auto">
              {title ?? body ?? notificationTexts.silent}
            </Link>
            <span className="muted small">
              <Time at={send_at ?? created_at} />
            </span>
            <Status value={status} />
            {running.length > 0 && counts.devices > 0 && (
              <Progress
                className="running-bar"
                value={((counts.devices - counts.pending) / counts.devices) * 100}
                aria-label={notificationTexts.progress(count(counts.devices - counts.pending), count(counts.devices))}
              />
            )}
          </li>
        ))}
      </ul>
    </Panel>
  );
};

export default function Overview() {
  const { id } = useProject();
  return (
    <Page
      title={texts.nav.overview}
      name={texts.nav.overview}
      actions={
        <Button component={Link} to={`/p/${id}/compose`} leftSection={<Icon name="compose" size={16} />}>
          {texts.nav.compose}
        </Button>
      }
    >
      <div className="stack">
        <FirstSteps />
        <Statistics />
        <div className="columns two">
          <Running />
          <Attention />
        </div>
      </div>
    </Page>
  );
}
