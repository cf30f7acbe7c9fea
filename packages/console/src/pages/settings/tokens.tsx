import type { NewProjectToken, ProjectToken } from "@herald/client";
import { Checkbox, Group } from "@mantine/core";
import { useState } from "react";
import { admin, useProject } from "../../api/clients.ts";
import { Confirm } from "../../parts/confirm.tsx";
import { Field } from "../../parts/field.tsx";
import { FormDialog } from "../../parts/form.tsx";
import { Time } from "../../parts/format.tsx";
import { rowActions } from "../../parts/list.tsx";
import { ManagedList, type NewProps } from "../../parts/managed-list.tsx";
import { RoleNote } from "../../parts/role-note.tsx";
import { useHasRoleHere } from "../../session-context.tsx";

type Scope = NonNullable<NewProjectToken["scopes"]>[number];

/** Every scope, and whether a new token has it: a scope that the client does not know does not compile, nor does a missing scope. */
const scopes: Readonly<Record<Scope, boolean>> = {
  send: true,
  read: true,
  devices: true,
  export: false,
  templates: false,
};
const names = Object.keys(scopes) as Scope[];

const NewToken = ({ onClose, onMade }: NewProps) => {
  const { id } = useProject();
  const [name, setName] = useState("");
  const [chosen, setChosen] = useState<Scope[]>(names.filter((scope) => scopes[scope]));
  const [expires, setExpires] = useState("");
  const create = async () => {
    const { token } = await admin.tokens.create(id, {
      name,
      scopes: names.filter((scope) => chosen.includes(scope)),
      ...(expires !== "" && { expires_at: new Date(expires).toISOString() }),
    });
    onMade({ secret: token });
  };
  return (
    <FormDialog
      title="New token"
      verb="Create token"
      act={create}
      onClose={onClose}
      ready={name.trim() !== "" && chosen.length > 0}
    >
      <Field
        label="Name"
        description="Where it is used, such as backend or importer."
        value={name}
        onChange={setName}
        data-autofocus
      />
      <Checkbox.Group label="Scopes" value={chosen} onChange={(next) => setChosen(next as Scope[])}>
        <Group mt={6}>
          {names.map((scope) => (
            <Checkbox key={scope} value={scope} label={scope} />
          ))}
        </Group>
      </Checkbox.Group>
      <Field label="Expires" type="datetime-local" value={expires} onChange={setExpires} />
    </FormDialog>
  );
};

export default function Tokens() {
  const { id } = useProject();
  const may = useHasRoleHere("admin");
  return (
    <>
      <RoleNote needs="admin" can="change anything here" />
      <ManagedList<ProjectToken>
        title="Project tokens"
        queryKey={[id, "tokens"]}
        load={(page) => admin.tokens.list(id, { perPage: 100 }).page(page)}
        empty={{ title: "No tokens", text: "Your backend needs a token to send notifications." }}
        add={may && { label: "New token", Form: NewToken, made: "The new token" }}
        columns={({ refresh }) => [
          { title: "Name", cell: (row) => <span className="break">{row.name}</span> },
          { title: "Scopes", cell: (row) => row.scopes.join(", ") },
          { title: "Expires", wide: true, cell: (row) => <Time at={row.expires_at} /> },
          { title: "Created", wide: true, cell: (row) => <Time at={row.created_at} /> },
          rowActions(
            (row) =>
              may && (
                <Confirm
                  label="Revoke"
                  title={`Revoke ${row.name}?`}
                  verb="Revoke the token"
                  act={() => admin.tokens.revoke(id, row.id)}
                  onDone={refresh}
                  about="It is refused everywhere within a second."
                />
              ),
          ),
        ]}
      />
    </>
  );
}
