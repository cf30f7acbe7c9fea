import { Text } from "@mantine/core";
import { Link, useNavigate } from "@tanstack/react-router";
import { useProject } from "../api/clients.ts";
import type { FieldSpec } from "../parts/field-values.ts";
import { adding, FormButton } from "../parts/form.tsx";
import { Time } from "../parts/format.tsx";
import { List } from "../parts/list.tsx";
import { Page } from "../parts/page.tsx";
import { useMayWrite } from "../session-context.tsx";

const nameField: FieldSpec = {
  label: "Name",
  hint: "1 to 64 of a-z, 0-9, _ and -, such as order-shipped",
  required: true,
  check: (name) =>
    name.trim() === "" || /^[a-z0-9][a-z0-9_-]{0,63}$/.test(name.trim()) ? undefined : "This cannot be a name.",
};

export default function Templates() {
  const { id: project, herald } = useProject();
  const navigate = useNavigate();
  const create = useMayWrite() && (
    <FormButton<{ name: string }>
      label="New template"
      button={adding}
      title="New template"
      verb="Write it"
      fields={{ name: nameField }}
      act={({ name: template }) => navigate({ to: "/p/$project/templates/$template", params: { project, template } })}
    />
  );
  return (
    <Page title="Templates" actions={create} role={{ needs: "operator", can: "change anything here" }}>
      <List
        label="Templates"
        queryKey={[project, "templates", "list"]}
        read={({ signal, page }) => herald.templates.list({ signal, perPage: 25 }).page(page)}
        keyOf={({ name }) => name}
        empty={{
          title: "No templates yet",
          text: "A template has texts with variables. Your backend names it and sends the values.",
          action: create,
        }}
        columns={[
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
        ]}
      />
    </Page>
  );
}
