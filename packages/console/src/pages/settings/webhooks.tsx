import type { EventType, Webhook } from "@herald/client";
import { knownValues } from "@herald/client/known-values";
import { MultiSelect, Switch } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { useProject } from "../../api/clients.ts";
import { Field } from "../../parts/field.tsx";
import { FormDialog } from "../../parts/form.tsx";
import { Status } from "../../parts/format.tsx";
import { rowActions } from "../../parts/list.tsx";
import { ManagedList, type NewProps } from "../../parts/managed-list.tsx";
import { RoleNote } from "../../parts/role-note.tsx";
import { useMayWrite } from "../../session-context.tsx";

/** For display: `notification.opened`. */
export const shortName = (type: string): string => type.replace("io.herald.", "").replace(".v1", "");

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
    <FormDialog title="New webhook" verb="Create webhook" act={create} onClose={onClose} ready={url.trim() !== ""}>
      <Field label="URL" placeholder="https://example.com/herald" value={url} onChange={setUrl} data-autofocus />
      <Field label="Description" value={description} onChange={setDescription} />
      <MultiSelect
        label="Events"
        placeholder={events.length === 0 ? "all" : undefined}
        data={knownValues.eventType.map((type) => ({ value: type, label: shortName(type) }))}
        value={events}
        onChange={(next) => setEvents(next as EventType[])}
        searchable
      />
    </FormDialog>
  );
};

export default function Webhooks() {
  const { id, herald } = useProject();
  const may = useMayWrite();
  return (
    <>
      <RoleNote needs="operator" can="change anything here" />
      <ManagedList<Webhook>
        title="Webhooks"
        queryKey={[id, "webhooks"]}
        load={(page) => herald.webhooks.list({ perPage: 100 }).page(page)}
        empty={{
          title: "No webhooks yet",
          text: "Herald posts each event to a webhook, signed, until your server accepts it.",
        }}
        add={may && { label: "New webhook", Form: NewWebhookForm, made: "Its signing secret" }}
        columns={({ change }) => [
          {
            title: "URL",
            cell: (row) => (
              <Link className="row-link" to={`/p/${id}/settings/webhooks/${row.id}`}>
                <b className="cut">{row.url}</b>
                <span className="muted cut" dir="auto">
                  {row.description}
                </span>
              </Link>
            ),
          },
          { title: "Status", cell: (row) => <Status value={webhookState(row)} /> },
          {
            title: "Events",
            wide: true,
            cell: (row) =>
              row.events === null ? "all" : row.events.length === 1 ? "1 type" : `${row.events.length} types`,
          },
          rowActions((row) => (
            <Switch
              size="xs"
              aria-label={`Enabled: ${row.url}`}
              checked={row.enabled}
              disabled={!may}
              onChange={(event) => {
                const enabled = event.currentTarget.checked;
                change(() => herald.webhooks.update(row.id, { enabled }));
              }}
            />
          )),
        ]}
      />
    </>
  );
}
