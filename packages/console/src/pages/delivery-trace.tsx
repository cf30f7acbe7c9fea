import type { DeliveryTrace } from "@herald/client";
import { Stack } from "@mantine/core";
import { Link, useParams } from "@tanstack/react-router";
import { useProject } from "../api/clients.ts";
import { useRead } from "../api/read.ts";
import { mono } from "../parts/code.tsx";
import { exactTime, platformNames, Status } from "../parts/format.tsx";
import { type Column, Rows } from "../parts/list.tsx";
import { Facts, Page, Panel } from "../parts/page.tsx";
import { Problem } from "../parts/problem.tsx";
import { reasonWords } from "../parts/reason.tsx";
import { Story } from "../parts/story.tsx";

const attemptColumns: readonly Column<DeliveryTrace["attempts"][number]>[] = [
  {
    title: "Outcome",
    cell: ({ outcome, reason, until }) => (
      <>
        <Status value={outcome} /> {reasonWords({ status: outcome, reason }).own}
        {until && ` until ${exactTime(until)}`}
      </>
    ),
  },
  // What was not sent, or not processed, has no number.
  { title: "Attempt", cell: ({ attempt = "–" }) => attempt },
  {
    title: "Provider response",
    long: true,
    cell: ({ provider_reason, provider_id }) => mono(provider_reason ?? provider_id),
  },
  { title: "At", right: true, wide: true, cell: ({ at }) => <span className="nowrap">{exactTime(at)}</span> },
];

/** Why one device got one notification, or did not. */
export default function DeliveryTracePage() {
  const { id, herald } = useProject();
  const { notification = "", device = "" } = useParams({ strict: false }) as { notification?: string; device?: string };
  const { data, error, refetch } = useRead(
    [id, "trace", notification, device],
    (options) => herald.notifications.trace(notification, device, options),
    { everyMs: 3_000 },
  );
  return (
    <Page title="Delivery trace" status={data?.opened_at ? "opened" : data?.status}>
      {error && <Problem error={error} onRetry={() => void refetch()} />}
      {data && (
        <div className="columns wide">
          <Stack>
            <Panel title="What happened">
              <Story sentences={data.explanation} />
            </Panel>
            {data.attempts.length > 0 && (
              <Panel flush title="Attempts">
                <Rows
                  rows={data.attempts}
                  columns={attemptColumns}
                  keyOf={({ at, outcome }) => `${at} ${outcome}`}
                  label="Attempts"
                />
              </Panel>
            )}
          </Stack>
          <Panel title="Which delivery">
            <Facts
              facts={{
                Notification: (
                  <Link className="link mono cut" to={`/p/${id}/notifications/${notification}`}>
                    {notification}
                  </Link>
                ),
                Device: (
                  <Link className="link mono cut" to={`/p/${id}/devices/${device}`}>
                    {device}
                  </Link>
                ),
                Platform: platformNames[data.device.platform] ?? data.device.platform,
                Status: data.device.status,
                "Matched target": mono(data.matched),
                User: data.user_id,
                "Next attempt": exactTime(data.next_attempt_at),
                Received: exactTime(data.received_at),
                Opened: exactTime(data.opened_at),
                Button: data.button,
                Dismissed: exactTime(data.dismissed_at),
              }}
            />
          </Panel>
        </div>
      )}
    </Page>
  );
}
