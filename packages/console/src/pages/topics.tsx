import type { Topic } from "@herald/client";
import { Button, Checkbox, Switch } from "@mantine/core";
import { useState } from "react";
import { useProject } from "../api/clients.ts";
import { useAct, useRefresh, useRows } from "../api/read.ts";
import { Confirm } from "../parts/confirm.tsx";
import { Field } from "../parts/field.tsx";
import { TextFilter, useFilters } from "../parts/filters.tsx";
import { FormDialog } from "../parts/form.tsx";
import { count, Time } from "../parts/format.tsx";
import { type Column, List, rowActions } from "../parts/list.tsx";
import { Page, Problem } from "../parts/page.tsx";
import { RoleNote } from "../parts/role-note.tsx";
import { useMayWrite } from "../session-context.tsx";

const NewTopic = ({ onClose }: { readonly onClose: () => void }) => {
  const { id, herald } = useProject();
  const refresh = useRefresh(id, "topics");
  const [name, setName] = useState("");
  const [closed, setClosed] = useState(false);
  const create = async () => {
    await herald.topics.create({ name: name.trim(), closed });
    refresh();
    onClose();
  };
  return (
    <FormDialog title="New topic" verb="Create topic" act={create} onClose={onClose} ready={name.trim() !== ""}>
      <Field label="Name" value={name} onChange={setName} data-autofocus />
      <Checkbox
        label="Closed"
        description="Only your backend, with a project token, can subscribe devices."
        checked={closed}
        onChange={(event) => setClosed(event.currentTarget.checked)}
      />
    </FormDialog>
  );
};

export default function Topics() {
  const { id, herald } = useProject();
  const { search, page } = useFilters();
  const { prefix } = search;
  const [creating, setCreating] = useState(false);
  const may = useMayWrite();
  const refresh = useRefresh(id, "topics");
  const query = useRows([id, "topics", "list", prefix, page], ({ signal }) =>
    herald.topics.list({ signal, perPage: 25, prefix }).page(page),
  );
  const closing = useAct(refresh);
  const columns: readonly Column<Topic>[] = [
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
    rowActions(
      (row) =>
        may && (
          <Confirm
            title={`Delete the topic ${row.name}?`}
            verb="Delete the topic"
            act={() => herald.topics.delete(row.id)}
            onDone={refresh}
            about={`${count(row.devices)} devices lose their subscription. Notifications already sent stay as they are.`}
          />
        ),
    ),
  ];
  const create = may && <Button onClick={() => setCreating(true)}>New topic</Button>;
  return (
    <Page title="Topics" actions={create}>
      <RoleNote needs="operator" can="change anything here" />
      {closing.error && <Problem error={closing.error} />}
      <List
        filters={<TextFilter name="prefix" label="Begins with" />}
        query={query}
        columns={columns}
        keyOf={(row) => row.id}
        label="Topics"
        unmatched="No topics begin with this."
        empty={{
          title: "No topics yet",
          text: "Devices subscribe to topics. A notification to topic:<name> reaches every subscribed device.",
          action: create,
        }}
      />
      {creating && <NewTopic onClose={() => setCreating(false)} />}
    </Page>
  );
}
