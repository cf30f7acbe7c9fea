import { HeraldError, type ProviderView } from "@herald/client";
import { useQueries, useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { admin, useProject } from "../../api/clients.ts";
import { usePollMs } from "../../api/live.tsx";
import { Icon } from "../../parts/icon.tsx";
import { Panel } from "../../parts/page.tsx";
import { texts } from "../../texts.ts";

const t = texts.overview;
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
