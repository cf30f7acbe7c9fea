import type { WebhookMessage } from "@herald/client";
import { Button, Drawer, Table } from "@mantine/core";
import { keepPreviousData, useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useNavigate, useParams } from "@tanstack/react-router";
import { useState } from "react";
import { useProject } from "../../api/clients.ts";
import { usePollMs } from "../../api/live.tsx";
import { Confirm } from "../../parts/confirm.tsx";
import { ChoiceFilter, useFilters } from "../../parts/filters.tsx";
import { exactTime, Status, Time } from "../../parts/format.tsx";
import { type Column, List } from "../../parts/list.tsx";
import { Empty, Facts, Panel, Problem } from "../../parts/page.tsx";
import { SecretOnce } from "../../parts/secret.tsx";
import { texts } from "../../texts/common.ts";
import { notificationTexts } from "../../texts/notifications.ts";
import { settingsTexts } from "../../texts/settings.ts";
import { traceTexts } from "../../texts/trace.ts";
import { shortName } from "./event-types.ts";
import { webhookState } from "./webhooks.tsx";

const t = settingsTexts.webhooks;

const Message = ({ webhook, message, onClose }: { webhook: string; message: string; onClose: () => void }) => {
  const { id, herald } = useProject();
  const { data, error } = useQuery({
    queryKey: [id, "webhooks", webhook, "messages", message],
    queryFn: () => herald.webhooks.message(webhook, message),
    refetchInterval: 2_000,
  });
  return (
    <Drawer opened onClose={onClose} title={t.message} position="right" size="lg">
      {error && <Problem error={error} />}
      {data && (
        <div className="stack">
          <Facts
            facts={[
              [t.type, data.type],
              [texts.common.status, <Status key="s" value={data.status} />],
              [notificationTexts.at, exactTime(data.timestamp)],
              data.next_attempt_at !== undefined && [traceTexts.nextAttempt, exactTime(data.next_attempt_at)],
            ]}
          />
          <strong className="text">{traceTexts.attempts}</strong>
          {/* biome-ignore lint/a11y/noNoninteractiveTabindex: scrolls by keyboard */}
          <section className="scroll" aria-label={traceTexts.attempts} tabIndex={0}>
            <Table className="table">
              <Table.Tbody>
                {data.attempts.map((attempt) => (
                  <Table.Tr key={attempt.at}>
                    <Table.Td className="nowrap">{exactTime(attempt.at)}</Table.Td>
                    <Table.Td className={attempt.error ? "bad" : "good"}>{attempt.status ?? "–"}</Table.Td>
                    <Table.Td className="right nowrap">{attempt.duration_ms} ms</Table.Td>
                    <Table.Td className="break">{attempt.error ?? attempt.response}</Table.Td>
                  </Table.Tr>
                ))}
              </Table.Tbody>
            </Table>
          </section>
          {/* biome-ignore lint/a11y/noNoninteractiveTabindex: scrolls by keyboard */}
          <pre className="code" tabIndex={0}>
            {JSON.stringify(data.payload, null, 2)}
          </pre>
        </div>
      )}
    </Drawer>
  );
};

export default function WebhookPage() {
  const { id, herald } = useProject();
  const { webhook = "" } = useParams({ strict: false }) as { webhook?: string };
  const { search, page, setPage } = useFilters();
  const queries = useQueryClient();
  const navigate = useNavigate();
  const [shown, setShown] = useState<string>();
  const [made, setMade] = useState<{ secret: string | undefined }>();
  const refresh = () => void queries.invalidateQueries({ queryKey: [id, "webhooks"] });
  const pollMs = usePollMs();
  const one = useQuery({
    queryKey: [id, "webhooks", webhook],
    queryFn: () => herald.webhooks.get(webhook),
    refetchInterval: pollMs,
  });
  const messages = useQuery({
    queryKey: [id, "webhooks", webhook, "messages", search.status, page],
    queryFn: () => herald.webhooks.messages(webhook, { status: search.status, perPage: 25 }).page(page),
    placeholderData: keepPreviousData,
    refetchInterval: Math.min(pollMs, 5_000),
  });
  const acting = useMutation({ mutationFn: (act: () => Promise<unknown>) => act(), onSuccess: refresh });
  const columns: readonly Column<WebhookMessage>[] = [
    {
      title: t.type,
      cell: (row) => (
        <button type="button" className="text-button link" onClick={() => setShown(row.id)}>
          {shortName(row.type)}
        </button>
      ),
    },
    { title: texts.common.status, cell: (row) => <Status value={row.status} /> },
    { title: traceTexts.attempts, right: true, cell: (row) => row.attempt_count },
    { title: t.lastError, wide: true, cell: (row) => <span className="break">{row.last_error}</span> },
    { title: notificationTexts.at, right: true, wide: true, cell: (row) => <Time at={row.timestamp} /> },
    {
      title: "",
      right: true,
      cell: (row) => (
        <Button
          size="compact-sm"
          variant="default"
          onClick={() => acting.mutate(() => herald.webhooks.resend(webhook, row.id))}
        >
          {t.resend}
        </Button>
      ),
    },
  ];
  return (
    <div className="stack">
      {(one.error || acting.error) && <Problem error={one.error ?? acting.error} />}
      {one.data && (
        <Panel
          title={
            <span className="title-line">
              <span className="cut">{one.data.url}</span> <Status value={webhookState(one.data)} />
            </span>
          }
          actions={
            <span className="toolbar">
              <Button
                size="compact-sm"
                variant="light"
                loading={acting.isPending}
                onClick={() => acting.mutate(() => herald.webhooks.ping(webhook))}
              >
                {t.ping}
              </Button>
              <Button
                size="compact-sm"
                variant="default"
                onClick={() =>
                  acting.mutate(() => herald.webhooks.recover(webhook, new Date(Date.now() - 86_400_000 * 7)))
                }
              >
                {t.recover}
              </Button>
              <Button
                size="compact-sm"
                variant="default"
                onClick={() =>
                  acting.mutate(async () => setMade({ secret: (await herald.webhooks.rotateSecret(webhook)).secret }))
                }
              >
                {t.rotate}
              </Button>
              <Confirm
                label={texts.common.delete}
                title={t.deleteTitle}
                verb={t.deleteVerb}
                act={() => herald.webhooks.delete(webhook)}
                onDone={() => {
                  refresh();
                  void navigate({ to: `/p/${id}/settings/webhooks` });
                }}
              >
                {t.deleteText}
              </Confirm>
            </span>
          }
        >
          <Facts
            facts={[
              one.data.description !== undefined && [t.description, one.data.description],
              [t.events, one.data.events === null ? t.allEvents : one.data.events.join(", ")],
              one.data.failing_since !== undefined && [t.failingSince, <Time key="f" at={one.data.failing_since} />],
              one.data.previous_secret_until !== undefined && [
                t.previousSecret,
                exactTime(one.data.previous_secret_until),
              ],
              [texts.common.created, exactTime(one.data.created_at)],
            ]}
          />
        </Panel>
      )}
      <Panel
        flush
        title={t.messages}
        actions={<ChoiceFilter name="status" label={texts.common.status} values={["waiting", "delivered", "failed"]} />}
      >
        <List
          query={messages}
          columns={columns}
          keyOf={(row) => row.id}
          label={t.messages}
          onPage={setPage}
          empty={<Empty title={t.noMessages}>{t.noMessagesHint}</Empty>}
        />
      </Panel>
      {shown && <Message webhook={webhook} message={shown} onClose={() => setShown(undefined)} />}
      {made && <SecretOnce title={t.made} value={made.secret} onClose={() => setMade(undefined)} />}
    </div>
  );
}
