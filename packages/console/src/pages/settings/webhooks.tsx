import type { EventType, NewWebhook, Webhook } from "@herald/client";
import { Button, MultiSelect, Switch, TextInput } from "@mantine/core";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { useProject } from "../../api/clients.ts";
import { FormDialog } from "../../parts/form.tsx";
import { Status } from "../../parts/format.tsx";
import { type Column, List } from "../../parts/list.tsx";
import { Empty, Panel, Problem } from "../../parts/page.tsx";
import { SecretOnce } from "../../parts/secret.tsx";
import { useSession } from "../../session-context.tsx";
import { texts } from "../../texts.ts";
import { eventTypes } from "./event-types.ts";

const t = texts.settings.webhooks;

export const webhookState = ({ enabled, failing_since, disabled_reason }: Webhook): string => {
  if (!enabled) return disabled_reason === undefined || disabled_reason === "requested" ? "disabled" : disabled_reason;
  return failing_since === undefined ? "enabled" : "failing";
};

export default function Webhooks() {
  const { id, herald } = useProject();
  const { session } = useSession();
  const queries = useQueryClient();
  const [creating, setCreating] = useState(false);
  const [made, setMade] = useState<{ secret: string | undefined }>();
  const [url, setUrl] = useState("");
  const [description, setDescription] = useState("");
  const [events, setEvents] = useState<string[]>([]);
  const refresh = () => void queries.invalidateQueries({ queryKey: [id, "webhooks"] });
  const query = useQuery({
    queryKey: [id, "webhooks", "list"],
    queryFn: () => herald.webhooks.list({ perPage: 100 }).page(),
  });
  const switching = useMutation({
    mutationFn: ({ webhook, enabled }: { webhook: string; enabled: boolean }) =>
      herald.webhooks.update(webhook, { enabled }),
    onSuccess: refresh,
  });
  const may = session.role !== "viewer";
  const columns: readonly Column<Webhook>[] = [
    {
      title: t.url,
      cell: (row) => (
        <Link className="row-link" to={`/p/${id}/settings/webhooks/${row.id}`}>
          <b className="cut">{row.url}</b>
          <span className="muted cut">{row.description}</span>
        </Link>
      ),
    },
    { title: texts.common.status, cell: (row) => <Status value={webhookState(row)} /> },
    {
      title: t.events,
      wide: true,
      cell: (row) => (row.events === null ? t.allEvents : t.someEvents(row.events.length)),
    },
    {
      title: "",
      right: true,
      cell: (row) => (
        <Switch
          size="xs"
          aria-label={`${t.enabled}: ${row.url}`}
          checked={row.enabled}
          disabled={!may}
          onChange={(event) => switching.mutate({ webhook: row.id, enabled: event.currentTarget.checked })}
        />
      ),
    },
  ];
  const create = async () => {
    const { secret } = await herald.webhooks.create({
      url: url.trim(),
      ...(description !== "" && { description }),
      ...(events.length > 0 && { events: events as NonNullable<NewWebhook["events"]>[number][] }),
    });
    setCreating(false);
    setUrl("");
    setMade({ secret });
    refresh();
  };
  return (
    <>
      {switching.error && <Problem error={switching.error} />}
      <Panel flush title={t.title} actions={may && <Button onClick={() => setCreating(true)}>{t.new}</Button>}>
        <List
          query={query}
          columns={columns}
          keyOf={(row) => row.id}
          label={t.title}
          empty={<Empty title={t.emptyTitle}>{t.empty}</Empty>}
        />
        {creating && (
          <FormDialog
            title={t.new}
            verb={t.create}
            act={create}
            onClose={() => setCreating(false)}
            ready={url.trim() !== ""}
          >
            <TextInput
              label={t.url}
              placeholder="https://example.com/herald"
              value={url}
              onChange={(event) => setUrl(event.currentTarget.value)}
              data-autofocus
            />
            <TextInput
              label={t.description}
              value={description}
              onChange={(event) => setDescription(event.currentTarget.value)}
            />
            <MultiSelect
              label={t.events}
              placeholder={events.length === 0 ? t.allEvents : undefined}
              data={eventTypes.map((type: EventType) => ({
                value: type,
                label: type.replace("io.herald.", "").replace(".v1", ""),
              }))}
              value={events}
              onChange={setEvents}
              searchable
            />
          </FormDialog>
        )}
        {made && <SecretOnce title={t.made} value={made.secret} onClose={() => setMade(undefined)} />}
      </Panel>
    </>
  );
}
