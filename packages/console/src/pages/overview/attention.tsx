import type { Notification } from "@herald/client";
import { Text } from "@mantine/core";
import { useQueries } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { admin, useProject } from "../../api/clients.ts";
import { usePollMs } from "../../api/live.tsx";
import { orNull } from "../../api/problems.ts";
import { firstRows, useRead } from "../../api/read.ts";
import { count, notificationName, percent } from "../../parts/format.tsx";
import { Icon } from "../../parts/icon.tsx";
import { Panel } from "../../parts/page.tsx";
import { useHasRole } from "../../session-context.tsx";
import { useLatest } from "./latest.ts";

const providers = ["apns", "fcm", "webpush"] as const;

/** The settings of each provider; null for one that the project does not have. */
export const useProviders = () => {
  const { id } = useProject();
  const pollMs = usePollMs();
  return useQueries({
    queries: providers.map((provider) => ({
      queryKey: [id, "providers", provider],
      queryFn: () => orNull(admin.providers.get(id, provider)),
      refetchInterval: pollMs,
    })),
  });
};

type Item = {
  readonly key: string;
  readonly to: string;
  readonly text: ReactNode;
  readonly detail?: string | undefined;
};

/** With fewer devices the share of a reason means little. */
const minDevices = 50;
const spikeShare = 0.2;
const spikeMs = 24 * 3_600_000;

/** Notifications of the last day in which one reason failed so many devices that a setting must be wrong. */
const spikesOf = (sent: readonly Notification[]) =>
  sent.flatMap((one) => {
    const [[reason, failed] = ["", 0]] = Object.entries(one.failures).toSorted(([, few], [, many]) => many - few);
    const { devices, pending } = one.counts;
    const share = failed / (devices - pending);
    const isRecent = Date.now() - Date.parse(one.send_at ?? one.created_at) < spikeMs;
    return isRecent && devices - pending >= minDevices && share > spikeShare ? [{ one, reason, share }] : [];
  });

/** Problems that need a person, each with a link to the page that solves it. */
export const Attention = () => {
  const { id, herald } = useProject();
  const views = useProviders();
  const seesDeadLetters = useHasRole("viewer");
  const deadLetters = useRead(
    ["dead-letters", id, "overview"],
    async ({ signal }) =>
      seesDeadLetters ? firstRows(admin.deadLetters.list({ signal, projectId: id }), 100) : { data: [], more: false },
    { everyMs: 15_000 },
  );
  const webhooks = useRead([id, "webhooks"], async () => (await herald.webhooks.list({ perPage: 100 }).page()).data);
  const latest = useLatest();
  const proposed = useRead(
    [id, "notifications", "proposed"],
    async ({ signal }) => (await herald.notifications.list({ signal, perPage: 10, status: "proposed" }).page()).data,
  );
  const settings = `/p/${id}/settings`;
  const own = deadLetters.data?.data.filter((one) => !one.replayed_at) ?? [];
  const items: Item[] = [
    ...(proposed.data ?? []).map((one) => ({
      key: one.id,
      to: `/p/${id}/notifications/${one.id}`,
      text: `“${notificationName(one)}” waits for approval`,
      detail: one.approval?.devices === undefined ? undefined : `about ${count(one.approval.devices)} devices`,
    })),
    ...views.flatMap(({ data }): Item[] => {
      if (!data) return [];
      const { provider, status, paused_reason, paused_detail, problems = [] } = data;
      const item = (key: string, text: string, detail?: string) => ({ key, to: `${settings}/providers`, text, detail });
      return [
        ...(status === "paused"
          ? [item(provider, `${provider} is paused`, [paused_reason, paused_detail].filter(Boolean).join(". "))]
          : []),
        ...problems.map(({ reason, detail }) => item(`${provider}/${reason}`, `${provider} is unreachable`, detail)),
      ];
    }),
    ...own.slice(0, 1).map(({ detail }) => ({
      key: "dead",
      to: `/p/${id}/operations/letters`,
      text: own.length === 1 ? "One message is a dead letter" : `${own.length} messages are dead letters`,
      detail,
    })),
    ...(webhooks.data ?? [])
      .filter((one) => one.failing_since || (!one.enabled && one.disabled_reason !== "requested"))
      .map((one) => ({
        key: one.id,
        to: `${settings}/webhooks`,
        text: one.enabled ? "A webhook keeps failing" : "A webhook was disabled",
        detail: one.url,
      })),
    ...spikesOf(latest.data ?? []).map(({ one, reason, share }) => ({
      key: one.id,
      to: `/p/${id}/notifications/${one.id}`,
      text: `“${notificationName(one)}” did not reach ${percent(share)} of its devices`,
      detail: reason,
    })),
  ];
  return (
    <Panel title="Needs attention">
      {items.length === 0 ? (
        <p className="good with-icon">
          <Icon name="check" size={16} /> Nothing needs attention.
        </p>
      ) : (
        <ul className="plain-list">
          {items.map(({ key, to, text, detail }) => (
            <li key={key} className="with-icon">
              <span className="warn">
                <Icon name="warning" size={16} />
              </span>
              <div>
                <Link to={to} className="link">
                  {text}
                </Link>
                {detail && (
                  <Text size="xs" c="dimmed" className="break">
                    {detail}
                  </Text>
                )}
              </div>
            </li>
          ))}
        </ul>
      )}
    </Panel>
  );
};
