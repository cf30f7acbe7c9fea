import type { NewWebhook, Webhook } from "@herald/client";
import { knownValues } from "@herald/client/known-values";
import { Switch } from "@mantine/core";
import { useProject } from "../../api/clients.ts";
import { useActs } from "../../api/read.ts";
import type { FieldsOf } from "../../parts/field-values.ts";
import { adding, FormButton } from "../../parts/form.tsx";
import { Status } from "../../parts/format.tsx";
import { List, RowLink } from "../../parts/list.tsx";
import { useMayWrite } from "../../session-context.tsx";

/** For display: `notification.opened`. */
export const shortName = (type: string): string => type.replace("io.herald.", "").replace(".v1", "");

export const webhookState = ({ enabled, failing_since, disabled_reason }: Webhook): string => {
  if (!enabled) return disabled_reason === undefined || disabled_reason === "requested" ? "disabled" : disabled_reason;
  return failing_since === undefined ? "enabled" : "failing";
};

const fields: FieldsOf<NewWebhook> = {
  url: { label: "URL", placeholder: "https://example.com/herald", required: true },
  description: { label: "Description" },
  events: {
    label: "Events",
    placeholder: "all",
    as: "many",
    choices: knownValues.eventType.map((type) => ({ value: type, label: shortName(type) })),
  },
};

export default function Webhooks() {
  const { id, herald } = useProject();
  const may = useMayWrite();
  const changing = useActs();
  return (
    <List
      label="Webhooks"
      queryKey={[id, "webhooks", "list"]}
      everyMs={false}
      read={({ page }) => herald.webhooks.list({ perPage: 100 }).page(page)}
      problem={changing.error}
      empty={{
        title: "No webhooks yet",
        text: "Herald posts each event to a webhook, signed, until your server accepts it.",
      }}
      actions={
        may && (
          <FormButton<NewWebhook>
            label="New webhook"
            button={adding}
            title="New webhook"
            verb="Create webhook"
            fields={fields}
            act={(webhook) => herald.webhooks.create(webhook)}
            secretTitle="Its signing secret"
          />
        )
      }
      columns={[
        {
          title: "URL",
          cell: (row) => (
            <RowLink to={`/p/${id}/settings/webhooks/${row.id}`} name={row.url} note={row.description ?? ""} />
          ),
        },
        { title: "Status", cell: (row) => <Status value={webhookState(row)} /> },
        {
          title: "Events",
          wide: true,
          cell: (row) =>
            row.events === null ? "all" : row.events.length === 1 ? "1 type" : `${row.events.length} types`,
        },
      ]}
      buttons={(row) => (
        <Switch
          size="xs"
          aria-label={`Enabled: ${row.url}`}
          checked={row.enabled}
          disabled={!may}
          onChange={(event) => {
            const enabled = event.currentTarget.checked;
            changing.mutate(() => herald.webhooks.update(row.id, { enabled }));
          }}
        />
      )}
    />
  );
}
