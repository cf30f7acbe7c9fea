import type { EventType, Webhook } from "@herald/client";
import { MultiSelect, Switch, TextInput } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { useProject } from "../../api/clients.ts";
import { FormDialog } from "../../parts/form.tsx";
import { Status } from "../../parts/format.tsx";
import { ManagedList, type NewProps } from "../../parts/managed-list.tsx";
import { useSession } from "../../session-context.tsx";
import { texts } from "../../texts/common.ts";
import { settingsTexts } from "../../texts/settings.ts";
import { eventTypes, shortName } from "./event-types.ts";

const t = settingsTexts.webhooks;

export const webhookState = ({ enabled, failing_since, disabled_reason }: Webhook): string => {
  if (!enabled) return disabled_reason === undefined || disabled_reason === "requested" ? "disabled" : disabled_reason;
  return failing_since === undefined ? "enabled" : "failing";
};

const NewWebhookForm = ({ onClose, onMade }: NewProps) => {
  const { herald } = useProject();
  const [url, setUrl] = useState("");
  const [description, setDescription] = useState("");
  const [events, setEvents] = useState<EventType[]>([]);
  const create = async () => {
    const { secret } = await herald.webhooks.create({
      url: url.trim(),
      ...(description !== "" && { description }),
      ...(events.length > 0 && { events }),
    });
    onMade({ secret });
  };
  return (
    <FormDialog title={t.new} verb={t.create} act={create} onClose={onClose} ready={url.trim() !== ""}>
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
        data={eventTypes.map((type) => ({ value: type, label: shortName(type) }))}
        value={events}
        onChange={(next) => setEvents(next as EventType[])}
        searchable
      />
    </FormDialog>
  );
};

export default function Webhooks() {
  const { id, herald } = useProject();
  const { session } = useSession();
  const may = session.role !== "viewer";
  return (
    <ManagedList<Webhook>
      title={t.title}
      queryKey={[id, "webhooks"]}
      load={(page) => herald.webhooks.list({ perPage: 100 }).page(page)}
      keyOf={(row) => row.id}
      empty={{ title: t.emptyTitle, text: t.empty }}
      add={may && { label: t.new, Form: NewWebhookForm, made: t.made }}
      columns={({ change }) => [
        {
          title: t.url,
          cell: (row) => (
            <Link className="row-link" to={`/p/${id}/settings/webhooks/${row.id}`}>
              <b className="cut">{row.url}</b>
              <span className="muted cut" dir="auto">
                {row.description}
              </span>
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
              onChange={(event) => {
                const enabled = event.currentTarget.checked;
                change(() => herald.webhooks.update(row.id, { enabled }));
              }}
            />
          ),
        },
      ]}
    />
  );
}
