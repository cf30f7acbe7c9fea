import type { TemplateSummary } from "@herald/client";
import { Button, Text } from "@mantine/core";
import { Link, useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { useProject } from "../api/clients.ts";
import { useRows } from "../api/read.ts";
import { Field } from "../parts/field.tsx";
import { useFilters } from "../parts/filters.tsx";
import { FormDialog } from "../parts/form.tsx";
import { Time } from "../parts/format.tsx";
import { type Column, List } from "../parts/list.tsx";
import { Page } from "../parts/page.tsx";
import { RoleNote } from "../parts/role-note.tsx";
import { useMayWrite } from "../session-context.tsx";

const nameRule = "1 to 64 of a-z, 0-9, _ and -, such as order-shipped";

const NewTemplate = ({ onClose }: { readonly onClose: () => void }) => {
  const { id } = useProject();
  const navigate = useNavigate();
  const [name, setName] = useState("");
  const isName = /^[a-z0-9][a-z0-9_-]{0,63}$/.test(name.trim());
  const open = () =>
    navigate({ to: "/p/$project/templates/$template", params: { project: id, template: name.trim() } });
  return (
    <FormDialog title="New template" verb="Write it" act={open} onClose={onClose} ready={isName}>
      <Field label="Name" description={nameRule} value={name} onChange={setName} data-autofocus />
    </FormDialog>
  );
};

const columns = (project: string): readonly Column<TemplateSummary>[] => [
  {
    title: "Name",
    cell: ({ name }) => (
      <Link to="/p/$project/templates/$template" params={{ project, template: name }} className="link break">
        {name}
      </Link>
    ),
  },
  {
    title: "Published",
    cell: ({ published }) => (published === undefined ? <Text c="dimmed">never</Text> : `version ${published}`),
  },
  { title: "Draft", cell: ({ changed }) => (changed ? "changed" : <Text c="dimmed">the same</Text>) },
  { title: "Written", wide: true, right: true, cell: ({ updated_at: at }) => <Time at={at} /> },
];

export default function Templates() {
  const { id, herald } = useProject();
  const { page } = useFilters();
  const [creating, setCreating] = useState(false);
  const query = useRows([id, "templates", "list", page], ({ signal }) =>
    herald.templates.list({ signal, perPage: 25 }).page(page),
  );
  const create = useMayWrite() && <Button onClick={() => setCreating(true)}>New template</Button>;
  return (
    <Page title="Templates" actions={create}>
      <RoleNote needs="operator" can="change anything here" />
      <List
        query={query}
        columns={columns(id)}
        keyOf={({ name }) => name}
        label="Templates"
        empty={{
          title: "No templates yet",
          text: "A template has texts with variables. Your backend names it and sends the values.",
          action: create,
        }}
      />
      {creating && <NewTemplate onClose={() => setCreating(false)} />}
    </Page>
  );
}
