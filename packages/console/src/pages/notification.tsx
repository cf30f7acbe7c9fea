import type { Delivery, NewPause, Notification } from "@herald/client";
import { Box, Button, Flex, Group, Paper, Progress, Stack, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useNavigate, useParams } from "@tanstack/react-router";
import { useProject } from "../api/clients.ts";
import { usePollMs } from "../api/live.tsx";
import { useProjectName } from "../api/projects.ts";
import { Copyable, mono } from "../parts/code.tsx";
import { ChoiceFilter } from "../parts/filters.tsx";
import { Confirm, FormButton } from "../parts/form.tsx";
import {
  activityName,
  count,
  duration,
  exactTime,
  notificationName,
  percent,
  platformNames,
  Status,
  Time,
} from "../parts/format.tsx";
import { type Column, IdLink, List } from "../parts/list.tsx";
import { LockScreen } from "../parts/lock-screen.tsx";
import { Facts, Note, Page, Panel } from "../parts/page.tsx";
import { PausedAlert } from "../parts/pause.tsx";
import { pauseReason, whileResumed } from "../parts/pause-reason.ts";
import { Problem } from "../parts/problem.tsx";
import { Reason } from "../parts/reason.tsx";
import { useMayWrite } from "../session-context.tsx";
import { saveDraft } from "./compose/draft.ts";
import { draftOf } from "./compose/notification-of.ts";
import { ApprovalBanner } from "./notification/approval.tsx";
import { RecipientsPanel, RecipientsUpload } from "./notification/recipients.tsx";
import { RolloutPanel } from "./notification/rollout.tsx";
import { sendTimeOf, WavesPanel } from "./notification/waves.tsx";

const final = ["completed", "cancelled", "expired"];

const Funnel = ({ notification }: { readonly notification: Notification }) => {
  const { counts } = notification;
  const bars = [
    { name: "Devices", value: counts.devices, color: "var(--muted)", note: "" },
    {
      name: "Accepted",
      value: counts.accepted,
      color: "var(--good)",
      note: counts.devices ? percent(counts.accepted / counts.devices) : "",
    },
    ...(counts.receipts_asked + counts.received > 0
      ? [
          {
            name: "Received",
            value: counts.received,
            color: "var(--good)",
            note: `of ${count(counts.receipts_asked)} asked`,
          },
        ]
      : []),
    {
      name: "Opened",
      value: counts.opened,
      color: "var(--open)",
      note: counts.accepted ? `${percent(counts.opened / counts.accepted)} of accepted` : "",
    },
  ];
  const rest = (["failed", "skipped", "expired", "cancelled", "pending"] as const).filter((name) => counts[name] > 0);
  return (
    <Stack>
      <ul className="plain-list funnel">
        {bars.map(({ name, value, color, note }) => (
          <Flex component="li" key={name} wrap={{ base: "wrap", xs: "nowrap" }} align="center" columnGap="sm">
            <Box w={76}>{name}</Box>
            <Progress
              size={14}
              flex={1}
              value={counts.devices ? (value / counts.devices) * 100 : 0}
              color={color}
              aria-label={name}
            />
            <Text component="b" w={72} ta="right" fz="inherit" fw={700}>
              {count(value)}
            </Text>
            <Note w={{ base: "100%", xs: 110 }} pl={{ base: 88, xs: 0 }}>
              {note}
            </Note>
          </Flex>
        ))}
      </ul>
      {counts.buttons && (
        <Note>
          Opened by button:{" "}
          {Object.entries(counts.buttons)
            .map(([id, opens]) => `${id} ${count(opens)}`)
            .join(", ")}
        </Note>
      )}
      {counts.dismissed > 0 && <Note>Dismissed: {count(counts.dismissed)}</Note>}
      {rest.length > 0 && (
        <Group gap={8} fz="xs">
          {rest.map((name) => (
            <span key={name} className={name === "failed" ? "bad" : "muted"}>
              <b>{count(counts[name])}</b> {name}
            </span>
          ))}
        </Group>
      )}
    </Stack>
  );
};

const Reasons = ({ notification }: { readonly notification: Notification }) => {
  const rows = [
    ...Object.entries(notification.failures).map(([reason, devices]) => ({ reason, devices, status: "failed" })),
    ...Object.entries(notification.skips).map(([reason, devices]) => ({ reason, devices, status: "skipped" })),
  ].toSorted((one, other) => other.devices - one.devices);
  if (rows.length === 0) return <Text c="dimmed">No devices failed or were skipped.</Text>;
  return (
    <ul className="plain-list">
      {rows.map(({ reason, devices, status }) => (
        <Flex component="li" align="baseline" gap={10} key={`${status}/${reason}`}>
          <a className="link mono" href={`/docs/errors#${reason}`} target="_blank" rel="noreferrer">
            {reason}
          </a>
          <Note className="grow">{status}</Note>
          <b>{count(devices)}</b>
        </Flex>
      ))}
    </ul>
  );
};

/** What is known last of a device, and when it happened. */
const latestOf = (row: Delivery): [status: string, at: string | undefined] => {
  if (row.opened_at) return ["opened", row.opened_at];
  if (row.dismissed_at) return ["dismissed", row.dismissed_at];
  return row.received_at ? ["received", row.received_at] : [row.status, row.at];
};

const Deliveries = ({ notification }: { readonly notification: string }) => {
  const { id, herald } = useProject();
  const columns: readonly Column<Delivery>[] = [
    {
      title: "Device",
      cell: (row) => (
        <IdLink to={`/p/${id}/notifications/${notification}/devices/${row.device_id}`} id={row.device_id} />
      ),
    },
    { title: "Platform", cell: (row) => platformNames[row.platform] ?? row.platform },
    { title: "Status", cell: (row) => <Status value={latestOf(row)[0]} /> },
    { title: "Reason", long: true, cell: (row) => <Reason row={row} /> },
    { title: "Attempts", right: true, wide: true, cell: (row) => row.attempts },
    { title: "At", right: true, wide: true, cell: (row) => <Time at={latestOf(row)[1]} /> },
  ];
  return (
    <List
      label="Deliveries"
      queryKey={[id, "deliveries", notification]}
      read={({ signal, page }, { status }) =>
        herald.notifications.deliveries(notification, { signal, perPage: 25, status }).page(page)
      }
      actions={
        <ChoiceFilter
          name="status"
          label="Status"
          values={["accepted", "failed", "pending", "skipped", "expired", "cancelled"]}
        />
      }
      columns={columns}
      keyOf={(row) => row.device_id}
      unmatched="No deliveries have this status."
      empty={{ title: "No devices yet. They appear here as Herald sends to them." }}
    />
  );
};

export default function NotificationPage() {
  const { id, herald } = useProject();
  const mayWrite = useMayWrite();
  const { notification: ntf = "" } = useParams({ strict: false }) as { notification?: string };
  const navigate = useNavigate();
  const pollMs = usePollMs();
  const app = useProjectName();
  const { data, error, refetch } = useQuery({
    queryKey: [id, "notifications", ntf],
    queryFn: ({ signal }) => herald.notifications.get(ntf, { signal }),
    refetchInterval: ({ state }) => (state.data && final.includes(state.data.status) ? pollMs : 1_500),
  });
  if (!data)
    return <Page title="Notifications">{error && <Problem error={error} onRetry={() => void refetch()} />}</Page>;
  const { counts, opens } = data;
  const isFinal = final.includes(data.status);
  const done = counts.devices - counts.pending;
  const progress = `${count(done)} of ${count(counts.devices)} devices are done`;
  const planned = Date.parse(data.schedule?.[0]?.at ?? data.send_at ?? data.created_at);
  const begun = Math.max(planned, data.approval?.at ? Date.parse(data.approval.at) : 0);
  const seconds = ((data.completed_at ? Date.parse(data.completed_at) : Date.now()) - begun) / 1_000;
  const name = notificationName(data);
  const pauseVerb = data.paused ? "Resume" : "Pause";
  const asDraft = () => {
    saveDraft(id, draftOf(data));
    void navigate({ to: `/p/${id}/compose` });
  };
  return (
    <Page
      name={name}
      title={
        <span className="cut" dir="auto">
          {name}
        </span>
      }
      status={data.status}
      counts={data.counts}
      role={{ needs: "operator", can: "change anything here" }}
      actions={
        <>
          {mayWrite && (
            <Button variant="default" onClick={asDraft}>
              Use as draft
            </Button>
          )}
          {!isFinal && data.status !== "proposed" && mayWrite && (
            <FormButton<Pick<NewPause, "reason">, unknown>
              key={pauseVerb}
              label={`${pauseVerb} sending`}
              title={`${pauseVerb} this notification?`}
              verb={`${pauseVerb} sending`}
              button={{ size: "sm" }}
              {...(data.paused
                ? { act: () => herald.notifications.resume(ntf), about: whileResumed }
                : {
                    fields: { reason: pauseReason },
                    act: (pause) => herald.notifications.pause(ntf, pause),
                    about: "No more devices get it until somebody resumes it. Its time to live runs on.",
                  })}
            />
          )}
          {!isFinal && mayWrite && (
            <Confirm
              label="Cancel sending"
              title="Cancel this notification?"
              verb="Cancel sending"
              button={{ size: "sm" }}
              act={() => herald.notifications.cancel(ntf)}
              about="Devices that already received it keep it. No more devices get it."
            />
          )}
        </>
      }
    >
      <Stack>
        {error && <Problem error={error} onRetry={() => void refetch()} />}
        {data.approval && <ApprovalBanner notification={data} approval={data.approval} />}
        {!isFinal && data.paused && <PausedAlert what="This notification is" paused={data.paused} />}
        {!isFinal && counts.devices > 0 && (
          <Paper p="md" role="status">
            <Progress value={(done / counts.devices) * 100} animated={!data.paused} aria-label={progress} />
            <Note>{progress}</Note>
          </Paper>
        )}
        <RecipientsUpload notification={data} ended={isFinal} />
        {data.schedule && <WavesPanel schedule={data.schedule} />}
        {data.rollout && <RolloutPanel notification={data} rollout={data.rollout} ended={isFinal} />}
        <div className="columns wide">
          <Stack>
            <Panel title="From devices to opens">
              <Funnel notification={data} />
            </Panel>
            <Panel title="Why devices failed or were skipped">
              <Reasons notification={data} />
            </Panel>
          </Stack>
          <Stack>
            <Panel title="Content">
              <Stack>
                {data.activity ? (
                  <Note>
                    Live Activity <b>{activityName(data)}</b>, with the state{" "}
                    <span className="mono break">{JSON.stringify(data.activity.content_state)}</span>
                  </Note>
                ) : (
                  <LockScreen
                    platform="web"
                    app={app}
                    shown={{ title: data.title, body: data.body, image: data.image, link: data.link_to }}
                  />
                )}
                <Facts
                  facts={{
                    Id: <Copyable value={data.id} />,
                    Kind: data.kind,
                    Targets: data.targets.length > 0 && mono(data.targets.slice(0, 20).join(", ")),
                    "No match for": data.unmatched.length > 0 && (
                      <span className="warn mono">{data.unmatched.join(", ")}</span>
                    ),
                    Link: data.link_to,
                    "Scheduled for": sendTimeOf(data),
                    Created: exactTime(data.created_at),
                    "Follow-up": data.escalate_after !== undefined && `after ${duration(data.escalate_after)}`,
                    Took: data.completed_at && duration(seconds),
                    Speed:
                      counts.accepted > 0 &&
                      seconds > 0 &&
                      `${count(Math.max(1, Math.round(done / Math.max(seconds, 0.05))))} a second`,
                    "First open": opens?.first_opened_at && <Time at={opens.first_opened_at} />,
                    "Half of the opens within": opens?.time_to_open && duration(opens.time_to_open.p50),
                  }}
                />
              </Stack>
            </Panel>
          </Stack>
        </div>
        <RecipientsPanel notification={data} ended={isFinal} />
        <Deliveries notification={ntf} />
      </Stack>
    </Page>
  );
}
