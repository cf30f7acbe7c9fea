import { Button, Group, TextInput } from "@mantine/core";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { Link, useNavigate, useParams } from "@tanstack/react-router";
import { type FormEvent, useState } from "react";
import { useProject } from "../api/clients.ts";
import { usePollMs } from "../api/live.tsx";
import { Confirm } from "../parts/confirm.tsx";
import { platformNames, Status, Time } from "../parts/format.tsx";
import { JsonEditor, patchOf } from "../parts/json-editor.tsx";
import { Copyable, Facts, Page, Panel, Problem } from "../parts/page.tsx";
import { useSession } from "../session-context.tsx";
import { texts } from "../texts/common.ts";
import { deviceTexts } from "../texts/devices.ts";
import { Timeline } from "./device/timeline.tsx";

const t = deviceTexts;

export default function DevicePage() {
  const { id, herald } = useProject();
  const { session } = useSession();
  const { device = "" } = useParams({ strict: false }) as { device?: string };
  const queries = useQueryClient();
  const navigate = useNavigate();
  const [topic, setTopic] = useState("");
  const refresh = () => void queries.invalidateQueries({ queryKey: [id] });
  const { data, error, refetch } = useQuery({
    queryKey: [id, "devices", device],
    queryFn: ({ signal }) => herald.devices.get(device, { signal }),
    refetchInterval: usePollMs(),
  });
  const subscribing = useMutation({
    mutationFn: ({ name, add }: { name: string; add: boolean }) =>
      add ? herald.devices.subscribe(device, name) : herald.devices.unsubscribe(device, name),
    onSuccess: () => {
      setTopic("");
      refresh();
    },
  });
  const changing = useMutation({
    mutationFn: (status: "active" | "inactive") => herald.devices.update(device, { status }),
    onSuccess: refresh,
  });
  const may = session.role !== "viewer";
  const subscribe = (event: FormEvent) => {
    event.preventDefault();
    subscribing.mutate({ name: topic.trim(), add: true });
  };
  return (
    <Page
      name={t.device}
      title={
        <span className="title-line">
          <span className="cut mono">{device}</span> {data && <Status value={data.status} />}
        </span>
      }
      actions={
        data &&
        may && (
          <>
            <Button
              variant="default"
              loading={changing.isPending}
              onClick={() => changing.mutate(data.status === "active" ? "inactive" : "active")}
            >
              {data.status === "active" ? t.deactivate : t.activate}
            </Button>
            <Confirm
              label={texts.common.delete}
              title={t.deleteTitle}
              verb={t.deleteVerb}
              size="sm"
              act={() => herald.devices.delete(device)}
              onDone={() => {
                refresh();
                void navigate({ to: `/p/${id}/devices` });
              }}
            >
              {t.deleteText}
            </Confirm>
          </>
        )
      }
    >
      {error && <Problem error={error} onRetry={() => void refetch()} />}
      {changing.error && <Problem error={changing.error} />}
      {data && (
        <div className="columns wide">
          <div className="stack">
            <Timeline device={device} />
          </div>
          <div className="stack">
            <Panel title={t.facts}>
              <Facts
                facts={[
                  [
                    t.platform,
                    `${platformNames[data.platform] ?? data.platform}${data.environment ? `, ${data.environment}` : ""}`,
                  ],
                  [t.token, <Copyable key="t" value={data.token} />],
                  [
                    t.user,
                    data.user_id === null ? (
                      <span key="n" className="muted">
                        {texts.common.none}
                      </span>
                    ) : (
                      <Link key="u" className="link" to={`/p/${id}/users/${encodeURIComponent(data.user_id)}`}>
                        {data.user_id}
                      </Link>
                    ),
                  ],
                  [t.lastSeen, <Time key="l" at={data.last_seen_at} />],
                  [texts.common.created, <Time key="c" at={data.created_at} />],
                ]}
              />
            </Panel>
            <Panel title={texts.nav.topics}>
              <div className="stack">
                {subscribing.error && <Problem error={subscribing.error} />}
                <Group gap={6}>
                  {data.topics.map((name) => (
                    <span key={name} className="chip-box">
                      <span className="cut">{name}</span>
                      {may && (
                        <button
                          type="button"
                          aria-label={t.unsubscribe(name)}
                          onClick={() => subscribing.mutate({ name, add: false })}
                        >
                          ×
                        </button>
                      )}
                    </span>
                  ))}
                  {data.topics.length === 0 && <span className="muted text">{t.noTopics}</span>}
                </Group>
                {may && (
                  <form className="find" onSubmit={subscribe}>
                    <TextInput
                      size="xs"
                      className="grow"
                      aria-label={t.subscribe}
                      placeholder={t.subscribe}
                      value={topic}
                      onChange={(event) => setTopic(event.currentTarget.value)}
                    />
                    <Button type="submit" size="xs" variant="default" disabled={topic.trim() === ""}>
                      {t.add}
                    </Button>
                  </form>
                )}
              </div>
            </Panel>
            {(["metadata", "identifiers"] as const).map((field) => (
              <Panel
                key={field}
                title={t[field]}
                actions={
                  may && (
                    <JsonEditor
                      title={t[field]}
                      value={data[field]}
                      save={(value) => herald.devices.update(device, { [field]: patchOf(data[field], value) })}
                      onDone={refresh}
                    />
                  )
                }
              >
                {Object.keys(data[field]).length === 0 ? (
                  <span className="muted text">{texts.common.none}</span>
                ) : (
                  // biome-ignore lint/a11y/noNoninteractiveTabindex: scrolls by keyboard
                  <pre className="code" tabIndex={0}>
                    {JSON.stringify(data[field], null, 2)}
                  </pre>
                )}
              </Panel>
            ))}
          </div>
        </div>
      )}
    </Page>
  );
}
