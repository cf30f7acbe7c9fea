import { Badge, Box, Group, Progress, SegmentedControl, SimpleGrid, Skeleton, Stack, Text } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { useProject } from "../api/clients.ts";
import { useLive } from "../api/live.tsx";
import { useRead } from "../api/read.ts";
import { ComposeButton } from "../parts/compose-button.tsx";
import { count, notificationName, percent, Status, Time } from "../parts/format.tsx";
import { Icon } from "../parts/icon.tsx";
import { Note, Page, Panel } from "../parts/page.tsx";
import { Problem } from "../parts/problem.tsx";
import { Attention, useProviders } from "./overview/attention.tsx";
import { useLatest } from "./overview/latest.ts";
import { Plot } from "./overview/plot.tsx";

const ranges = {
  day: { hours: 24, interval: "hour", label: "24 hours" },
  week: { hours: 168, interval: "hour", label: "7 days" },
  month: { hours: 720, interval: "day", label: "30 days" },
} as const;
type Range = keyof typeof ranges;

const Statistics = () => {
  const { id, herald } = useProject();
  const [range, setRange] = useState<Range>("day");
  const live = useLive();
  const { hours, interval } = ranges[range];
  const { data, error, refetch } = useRead(
    [id, "stats", range],
    (options) => {
      const from = new Date(Date.now() - hours * 3_600_000).toISOString();
      return herald.stats({ from, interval, time_zone: Intl.DateTimeFormat().resolvedOptions().timeZone }, options);
    },
    { keep: true },
  );
  const totals = data?.totals;
  const figures = [
    { name: "Sent", value: totals && count(totals.sent), color: "good" },
    ...(totals && totals.receipts_asked + totals.received > 0
      ? [
          { name: `Received, of ${count(totals.receipts_asked)} asked`, value: count(totals.received), color: "good" },
          { name: "Dismissed", value: count(totals.dismissed) },
        ]
      : []),
    { name: "Opened", value: totals && count(totals.opened), color: "open" },
    { name: "Open rate", value: totals && percent(totals.open_rate) },
    { name: "Failed", value: totals && count(totals.failed), color: totals && totals.failed > 0 ? "bad" : "" },
  ];
  return (
    <Panel
      title={
        <span className="with-icon">
          Sent and opened
          <Text span className="with-icon" fz="xs" fw={500} c={live ? "var(--good)" : "dimmed"}>
            <Box component="i" w={7} h={7} bdrs="50%" bg="currentColor" /> {live ? "live" : "every few seconds"}
          </Text>
        </span>
      }
      flush
      actions={
        <SegmentedControl
          size="xs"
          aria-label="Time range"
          value={range}
          onChange={(value) => setRange(value as Range)}
          data={(Object.keys(ranges) as Range[]).map((value) => ({ value, label: ranges[value].label }))}
        />
      }
    >
      {error && (
        <Box px="md" py={14}>
          <Problem error={error} onRetry={() => void refetch()} />
        </Box>
      )}
      <SimpleGrid
        cols={{ base: 2, xs: figures.length }}
        spacing={1}
        verticalSpacing={1}
        bg="var(--line)"
        style={{ borderBottom: "1px solid var(--line)" }}
      >
        {figures.map(({ name, value, color }) => (
          <Box key={name} bg="var(--panel)" px="md" py="sm">
            <Note display="block">{name}</Note>
            {value === undefined ? (
              <Skeleton height={24} width={60} mt={6} />
            ) : (
              <Text component="b" className={color} fz="1.375rem" fw={620} lts="-0.02em">
                {value}
              </Text>
            )}
          </Box>
        ))}
      </SimpleGrid>
      <Box px="sm" pt={8} pb={10}>
        {data ? <Plot stats={data} /> : <Skeleton height={240} />}
      </Box>
    </Panel>
  );
};

/** The steps from an empty project to its first push. */
const FirstSteps = () => {
  const { id, herald } = useProject();
  const providers = useProviders();
  const devices = useRead([id, "devices", "any"], () => herald.devices.list({ perPage: 1 }).page(), { everyMs: 3_000 });
  const sent = useRead([id, "notifications", "any"], () => herald.notifications.list({ perPage: 1 }).page(), {
    everyMs: 3_000,
  });
  if (!devices.data || !sent.data || providers.some(({ data }) => data === undefined)) return null;
  const steps = [
    {
      done: providers.some(({ data }) => data),
      text: "Add a provider",
      hint: "APNs for iOS, FCM for Android, Web Push for browsers. Send a test push to check its key.",
      to: `/p/${id}/settings/providers`,
    },
    {
      done: devices.data.pagination.count > 0,
      text: "Register a device",
      hint: "Your app does this with POST /api/v1/devices, or with PUT /identification, which needs no credential.",
      to: `/p/${id}/devices`,
    },
    {
      done: sent.data.pagination.count > 0,
      text: "Send a notification",
      hint: "Before you send it, Compose counts the devices and shows a preview.",
      to: `/p/${id}/compose`,
    },
  ];
  if (steps.every(({ done }) => done)) return null;
  return (
    <Panel title="First push">
      <SimpleGrid cols={{ base: 1, md: 3 }} spacing={14} role="list">
        {steps.map(({ done, text, hint, to }, index) => (
          <Group key={text} gap="sm" wrap="nowrap" align="start" role="listitem">
            <Badge circle size="lg" variant={done ? "filled" : "default"}>
              {done ? <Icon name="check" size={14} /> : index + 1}
            </Badge>
            <div>
              <Link className="link" to={to}>
                {text}
              </Link>
              <Text size="xs" c="dimmed">
                {hint}
              </Text>
            </div>
          </Group>
        ))}
      </SimpleGrid>
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
    <Panel title={running.length > 0 ? "Running now" : "Latest notifications"}>
      {query.error && <Problem error={query.error} />}
      {query.data?.length === 0 && <Text c="dimmed">Nothing has been sent yet.</Text>}
      <ul className="plain-list">
        {rows.map(({ counts, ...row }) => (
          <li key={row.id} className="running">
            <Link to={`/p/${id}/notifications/${row.id}`} className="link cut" dir="auto">
              {notificationName(row)}
            </Link>
            <Note>
              <Time at={row.send_at ?? row.created_at} />
            </Note>
            <Status value={row.status} counts={counts} />
            {running.length > 0 && counts.devices > 0 && (
              <Progress
                style={{ gridColumn: "1 / -1" }}
                value={((counts.devices - counts.pending) / counts.devices) * 100}
                aria-label={`${count(counts.devices - counts.pending)} of ${count(counts.devices)} devices are done`}
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
    <Page title="Overview" actions={<ComposeButton project={id} />}>
      <Stack>
        <FirstSteps />
        <Statistics />
        <SimpleGrid cols={{ base: 1, md: 2 }} style={{ alignItems: "start" }}>
          <Running />
          <Attention />
        </SimpleGrid>
      </Stack>
    </Page>
  );
}
