import type { WebhookMessage, WebhookMessageDetail } from "@herald/client";
import { Group, Stack, Text, UnstyledButton } from "@mantine/core";
import { useNavigate, useParams } from "@tanstack/react-router";
import { useProject } from "../../api/clients.ts";
import { useAct, useActs, useRead } from "../../api/read.ts";
import { JsonCode } from "../../parts/code.tsx";
import { ChoiceFilter } from "../../parts/filters.tsx";
import { Confirm } from "../../parts/form.tsx";
import { exactTime, Status, Time } from "../../parts/format.tsx";
import { type Column, List, Rows } from "../../parts/list.tsx";
import { Facts, Panel } from "../../parts/page.tsx";
import { Problem } from "../../parts/problem.tsx";
import { SecretOnce } from "../../parts/secret.tsx";
import { SmallButton } from "../../parts/small-button.tsx";
import { useMayWrite } from "../../session-context.tsx";
import { shortName, webhookState } from "./webhooks.tsx";

const attemptColumns: readonly Column<WebhookMessageDetail["attempts"][number]>[] = [
  { title: "At", cell: ({ at }) => exactTime(at) },
  {
    title: "Status",
    cell: ({ status, error }) => <span className={error ? "bad" : "good"}>{status ?? "–"}</span>,
  },
  { title: "Took", right: true, cell: ({ duration_ms }) => `${duration_ms} ms` },
  { title: "Response", long: true, cell: ({ error, response }) => <span className="break">{error ?? response}</span> },
];

const Message = ({ webhook, message }: { webhook: string; message: string }) => {
  const { id, herald } = useProject();
  const { data, error } = useRead(
    [id, "webhooks", webhook, "messages", message],
    () => herald.webhooks.message(webhook, message),
    { everyMs: 2_000 },
  );
  return (
    <>
      {error && <Problem error={error} />}
      {data && (
        <>
          <Facts
            facts={{
              Event: data.type,
              Status: <Status value={data.status} />,
              At: exactTime(data.timestamp),
              "Next attempt": exactTime(data.next_attempt_at),
            }}
          />
          <Text fw={700}>Attempts</Text>
          <Rows rows={data.attempts} columns={attemptColumns} keyOf={({ at }) => at} label="Attempts" />
          <JsonCode value={data.payload} />
        </>
      )}
    </>
  );
};

const messagesPollMs = 4_000;

export default function WebhookPage() {
  const { id, herald } = useProject();
  const { webhook = "" } = useParams({ strict: false }) as { webhook?: string };
  const navigate = useNavigate();
  const one = useRead([id, "webhooks", webhook], () => herald.webhooks.get(webhook));
  const acting = useActs();
  const rotating = useAct(() => herald.webhooks.rotateSecret(webhook));
  const may = useMayWrite();
  const columns: readonly Column<WebhookMessage>[] = [
    {
      title: "Event",
      cell: (row, open) => (
        <UnstyledButton c="var(--good)" fz="inherit" className="link" onClick={open}>
          {shortName(row.type)}
        </UnstyledButton>
      ),
    },
    { title: "Status", cell: (row) => <Status value={row.status} /> },
    { title: "Attempts", right: true, wide: true, cell: (row) => row.attempt_count },
    { title: "Last error", wide: true, cell: (row) => <span className="break">{row.last_error}</span> },
    { title: "At", right: true, wide: true, cell: (row) => <Time at={row.timestamp} /> },
  ];
  return (
    <Stack>
      {[one.error, acting.error, rotating.error].map((error) => error && <Problem key={String(error)} error={error} />)}
      {one.data && (
        <Panel
          title={<span className="cut">{one.data.url}</span>}
          status={webhookState(one.data)}
          actions={
            may && (
              <Group gap={8}>
                <SmallButton
                  variant="light"
                  loading={acting.isPending}
                  onClick={() => acting.mutate(() => herald.webhooks.ping(webhook))}
                >
                  Send a test message
                </SmallButton>
                <SmallButton
                  onClick={() =>
                    acting.mutate(() => herald.webhooks.recover(webhook, new Date(Date.now() - 86_400_000 * 7)))
                  }
                >
                  Send failed ones again
                </SmallButton>
                <SmallButton onClick={() => rotating.mutate()}>New secret</SmallButton>
                <Confirm
                  title="Delete this webhook?"
                  verb="Delete the webhook"
                  act={() => herald.webhooks.delete(webhook)}
                  onDone={() => void navigate({ to: `/p/${id}/settings/webhooks` })}
                  about="Messages that wait are dropped."
                />
              </Group>
            )
          }
        >
          <Facts
            facts={{
              Description: one.data.description,
              Events: one.data.events === null ? "all" : one.data.events.join(", "),
              "Failing since": one.data.failing_since && <Time at={one.data.failing_since} />,
              "Signed with the former secret until": exactTime(one.data.previous_secret_until),
              Created: exactTime(one.data.created_at),
            }}
          />
        </Panel>
      )}
      <List
        label="Messages"
        queryKey={[id, "webhooks", webhook, "messages"]}
        read={({ page }, { status }) => herald.webhooks.messages(webhook, { status, perPage: 25 }).page(page)}
        everyMs={messagesPollMs}
        actions={<ChoiceFilter name="status" label="Status" values={["waiting", "delivered", "failed"]} />}
        columns={columns}
        detail={{ title: () => "Message", show: (row) => <Message webhook={webhook} message={row.id} /> }}
        buttons={(row) =>
          may && (
            <SmallButton onClick={() => acting.mutate(() => herald.webhooks.resend(webhook, row.id))}>
              Send again
            </SmallButton>
          )
        }
        empty={{ title: "No messages", text: "Every event sent to it is listed here, with its attempts." }}
      />
      {rotating.data && (
        <SecretOnce title="Signing secret" value={rotating.data.secret} onClose={() => rotating.reset()} />
      )}
    </Stack>
  );
}
