import type { NewTopic } from "@herald/client";
import { Switch } from "@mantine/core";
import { useProject } from "../api/clients.ts";
import { useActs } from "../api/read.ts";
import type { FieldsOf } from "../parts/field-values.ts";
import { TextFilter } from "../parts/filters.tsx";
import { adding, Confirm, FormButton } from "../parts/form.tsx";
import { count, Time } from "../parts/format.tsx";
import { List } from "../parts/list.tsx";
import { Page } from "../parts/page.tsx";
import { useMayWrite } from "../session-context.tsx";

const fields: FieldsOf<NewTopic> = {
  name: { label: "Name", required: true },
  closed: {
    label: "Closed",
    hint: "Only your backend, with a project token, can subscribe devices.",
    as: "switch",
  },
};

export default function Topics() {
  const { id, herald } = useProject();
  const may = useMayWrite();
  const closing = useActs();
  const create = may && (
    <FormButton<NewTopic>
      label="New topic"
      button={adding}
      title="New topic"
      verb="Create topic"
      fields={fields}
      initial={{ closed: false }}
      act={(topic) => herald.topics.create(topic)}
    />
  );
  return (
    <Page title="Topics" actions={create} role={{ needs: "operator", can: "change anything here" }}>
      <List
        label="Topics"
        queryKey={[id, "topics", "list"]}
        read={({ signal, page }, { prefix }) => herald.topics.list({ signal, perPage: 25, prefix }).page(page)}
        filters={<TextFilter name="prefix" label="Begins with" />}
        problem={closing.error}
        unmatched="No topics begin with this."
        empty={{
          title: "No topics yet",
          text: "Devices subscribe to topics. A notification to topic:<name> reaches every subscribed device.",
          action: create,
        }}
        columns={[
          { title: "Name", cell: (row) => <span className="break">{row.name}</span> },
          { title: "Devices", right: true, cell: (row) => count(row.devices) },
          {
            title: "Closed",
            cell: (row) => (
              <Switch
                size="xs"
                aria-label={`Closed: ${row.name}`}
                checked={row.closed}
                disabled={!may}
                onChange={({ currentTarget: { checked: closed } }) =>
                  closing.mutate(() => herald.topics.update(row.id, { closed }))
                }
              />
            ),
          },
          { title: "Created", wide: true, right: true, cell: (row) => <Time at={row.created_at} /> },
        ]}
        buttons={(row) =>
          may && (
            <Confirm
              title={`Delete the topic ${row.name}?`}
              verb="Delete the topic"
              act={() => herald.topics.delete(row.id)}
              about={`${count(row.devices)} devices lose their subscription. Notifications already sent stay as they are.`}
            />
          )
        }
      />
    </Page>
  );
}
