import type { ProjectToken } from "@herald/client";
import { Button, Checkbox, Group, TextInput } from "@mantine/core";
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { admin, useProject } from "../../api/clients.ts";
import { Confirm } from "../../parts/confirm.tsx";
import { FormDialog } from "../../parts/form.tsx";
import { Time } from "../../parts/format.tsx";
import { type Column, List } from "../../parts/list.tsx";
import { Empty, Panel } from "../../parts/page.tsx";
import { SecretOnce } from "../../parts/secret.tsx";
import { texts } from "../../texts.ts";

const t = texts.settings.tokens;
const scopes = ["send", "read", "devices"] as const;

export default function Tokens() {
  const { id } = useProject();
  const queries = useQueryClient();
  const [creating, setCreating] = useState(false);
  const [made, setMade] = useState<{ token: string | undefined }>();
  const [name, setName] = useState("");
  const [chosen, setChosen] = useState<string[]>([...scopes]);
  const [expires, setExpires] = useState("");
  const refresh = () => void queries.invalidateQueries({ queryKey: [id, "tokens"] });
  const query = useQuery({
    queryKey: [id, "tokens"],
    queryFn: () => admin.tokens.list(id, { perPage: 100 }).page(),
  });
  const columns: readonly Column<ProjectToken>[] = [
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
  ];
  const create = async () => {
    const token = await admin.tokens.create(id, {
      name,
      scopes: scopes.filter((scope) => chosen.includes(scope)),
      ...(expires !== "" && { expires_at: new Date(expires).toISOString() }),
    });
    setCreating(false);
    setName("");
    setMade({ token: token.token });
    refresh();
  };
  const button = <Button onClick={() => setCreating(true)}>{t.new}</Button>;
  return (
    <Panel flush title={t.title} actions={button}>
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
          ready={name.trim() !== "" && chosen.length > 0}
        >
          <TextInput
            label={t.name}
            description={t.nameHint}
            value={name}
            onChange={(event) => setName(event.currentTarget.value)}
            data-autofocus
          />
          <Checkbox.Group label={t.scopes} value={chosen} onChange={setChosen}>
            <Group mt={6}>
              {scopes.map((scope) => (
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
      )}
      {made && <SecretOnce title={t.made} value={made.token} onClose={() => setMade(undefined)} />}
    </Panel>
  );
}
