import type { NewProjectToken, ProjectToken } from "@herald/client";
import { Checkbox, Group, TextInput } from "@mantine/core";
import { useState } from "react";
import { admin, useProject } from "../../api/clients.ts";
import { Confirm } from "../../parts/confirm.tsx";
import { FormDialog } from "../../parts/form.tsx";
import { Time } from "../../parts/format.tsx";
import { ManagedList, type NewProps } from "../../parts/managed-list.tsx";
import { texts } from "../../texts/common.ts";
import { settingsTexts } from "../../texts/settings.ts";

const t = settingsTexts.tokens;

type Scope = NonNullable<NewProjectToken["scopes"]>[number];

/** Each scope and whether a new token has it; one that the client does not know, or one that is missing, does not compile. */
const scopes: Readonly<Record<Scope, boolean>> = { send: true, read: true, devices: true, export: false };
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
      title={t.new}
      verb={t.create}
      act={create}
      onClose={onClose}
      ready={name.trim() !== "" && chosen.length > 0}
    >
      <TextInput
        label={t.name}
        description={t.nameHint}
        value={name}
        onChange={(event) => setName(event.currentTarget.value)}
        data-autofocus
      />
      <Checkbox.Group label={t.scopes} value={chosen} onChange={(next) => setChosen(next as Scope[])}>
        <Group mt={6}>
          {names.map((scope) => (
            <Checkbox key={scope} value={scope} label={scope} />
          ))}
        </Group>
      </Checkbox.Group>
      <TextInput
        label={t.expires}
        type="datetime-local"
        value={expires}
        onChange={(event) => setExpires(event.currentTarget.value)}
      />
    </FormDialog>
  );
};

export default function Tokens() {
  const { id } = useProject();
  return (
    <ManagedList<ProjectToken>
      title={t.title}
      queryKey={[id, "tokens"]}
      load={(page) => admin.tokens.list(id, { perPage: 100 }).page(page)}
      keyOf={(row) => row.id}
      empty={{ title: t.emptyTitle, text: t.empty }}
      add={{ label: t.new, Form: NewToken, made: t.made }}
      columns={({ refresh }) => [
        { title: t.name, cell: (row) => <span className="break">{row.name}</span> },
        { title: t.scopes, cell: (row) => row.scopes.join(", ") },
        { title: t.expires, wide: true, cell: (row) => <Time at={row.expires_at} /> },
        { title: texts.common.created, wide: true, cell: (row) => <Time at={row.created_at} /> },
        {
          title: "",
          right: true,
          cell: (row) => (
            <Confirm
              label={t.revoke}
              title={t.revokeTitle(row.name)}
              verb={t.revokeVerb}
              act={() => admin.tokens.revoke(id, row.id)}
              onDone={refresh}
            >
              {t.revokeText}
            </Confirm>
          ),
        },
      ]}
    />
  );
}
