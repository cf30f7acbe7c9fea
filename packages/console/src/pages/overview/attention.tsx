import { HeraldError, type Notification, type ProviderView } from "@herald/client";
import { useQueries, useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { admin, useProject } from "../../api/clients.ts";
import { usePollMs } from "../../api/live.tsx";
import { percent } from "../../parts/format.tsx";
import { Icon } from "../../parts/icon.tsx";
import { Panel } from "../../parts/page.tsx";
import { notificationTexts } from "../../texts/notifications.ts";
import { overviewTexts } from "../../texts/overview.ts";

import { useLatest } from "./latest.ts";

const t = overviewTexts;
const providers = ["apns", "fcm", "webpush"] as const;

/** A provider's settings; null where it has none. */
export const readProvider = (project: string, provider: (typeof providers)[number]): Promise<ProviderView | null> =>
  admin.providers.get(project, provider).catch((error: unknown) => {
    if (error instanceof HeraldError && error.status === 404) return null;
    throw error;
  });

export const useProviders = () => {
  const { id } = useProject();
  const pollMs = usePollMs();
  return useQueries({
    queries: providers.map((provider) => ({
      queryKey: [id, "providers", provider],
      queryFn: () => readProvider(id, provider),
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

/** Fewer devices say nothing about a share. */
const minDevices = 50;
const spikeShare = 0.2;
const spikeMs = 24 * 3_600_000;

/** Notifications of the last day for which one reason kept so many devices from getting them that something is set up wrongly. */
const spikesOf = (sent: readonly Notification[]) =>
  sent.flatMap((one) => {
    const [[reason, failed] = ["", 0]] = Object.entries(one.failures).toSorted(([, few], [, many]) => many - few);
    const { devices, pending } = one.counts;
    const share = failed / (devices - pending);
    const isRecent = Date.now() - Date.parse(one.send_at ?? one.created_at) < spikeMs;
    return isRecent && devices - pending >= minDevices && share > spikeShare ? [{ one, reason, share }] : [];
  });

/** What a person must look at, each with the place where it is mended. */
export const Attention = () => {
  const { id, herald } = useProject();
  const pollMs = usePollMs();
  const views = useProviders();
  const deadLetters = useQuery({
    queryKey: ["dead-letters", "overview"],
    queryFn: async () => (await admin.deadLetters.list({ perPage: 100 }).page()).data,
    refetchInterval: pollMs,
  });
  const webhooks = useQuery({
    queryKey: [id, "webhooks"],
    queryFn: async () => (await herald.webhooks.list({ perPage: 100 }).page()).data,
    refetchInterval: pollMs,
  });
  const project = useQuery({
    queryKey: ["projects", id],
    queryFn: () => admin.projects.get(id),
    refetchInterval: 30_000,
  });
  const latest = useLatest();
  const settings = `/p/${id}/settings`;
  const own = deadLetters.data?.filter((one) => one.project_id === id && !one.replayed_at) ?? [];
  const items: Item[] = [
    ...views.flatMap(({ data }): Item[] => {
      if (!data) return [];
      const paused: Item[] =
        data.status === "paused"
          ? [
              {
                key: data.provider,
                to: `${settings}/providers`,
                text: t.paused(data.provider),
                detail: data.paused_reason,
              },
            ]
          : [];
      return [
        ...paused,
        ...(data.problems ?? []).map((problem) => ({
          key: `${data.provider}/${problem.reason}`,
          to: `${settings}/providers`,
          text: t.providerProblem(data.provider),
          detail: problem.detail,
        })),
      ];
    }),
    ...(own.length > 0
      ? [{ key: "dead", to: `/p/${id}/operations/letters`, text: t.deadLetters(own.length), detail: own[0]?.detail }]
      : []),
    ...(webhooks.data ?? [])
      .filter((one) => one.failing_since || (!one.enabled && one.disabled_reason !== "requested"))
      .map((one) => ({ key: one.id, to: `${settings}/webhooks`, text: t.webhook(one.enabled), detail: one.url })),
    ...spikesOf(latest.data ?? []).map(({ one, reason, share }) => ({
      key: one.id,
      to: `/p/${id}/notifications/${one.id}`,
      text: t.spike(one.title ?? one.body ?? notificationTexts.silent, percent(share)),
      detail: reason,
    })),
    ...(project.data?.warnings ?? []).map((warning) => ({ key: warning, to: settings, text: warning })),
  ];
  return (
    <Panel title={t.attention}>
      {items.length === 0 ? (
        <p className="text good with-icon">
          <Icon name="check" size={16} /> {t.allGood}
        </p>
      ) : (
        <ul className="plain-list">
          {items.map(({ key, to, text, detail }) => (
            <li key={key} className="attention">
              <span className="warn">
                <Icon name="warning" size={16} />
              </span>
              <div>
                <Link to={to} className="link">
                  {text}
                </Link>
                {detail && <div className="muted small break">{detail}</div>}
              </div>
            </li>
          ))}
        </ul>
      )}
    </Panel>
  );
};
