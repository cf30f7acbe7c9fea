import type { NewOperator, Operator } from "@herald/client";
import { Button, Select, TextInput } from "@mantine/core";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { admin } from "../../api/clients.ts";
import { Confirm } from "../../parts/confirm.tsx";
import { FormDialog } from "../../parts/form.tsx";
import { Time } from "../../parts/format.tsx";
import { type Column, List } from "../../parts/list.tsx";
import { Empty, Panel, Problem } from "../../parts/page.tsx";
import { SecretOnce } from "../../parts/secret.tsx";
import { useSession } from "../../session-context.tsx";
import { texts } from "../../texts.ts";

const t = texts.operations.operators;
const roles = ["viewer", "operator", "admin"] as const;
type Role = NewOperator["role"];

export default function Operators() {
  const { session } = useSession();
  const queries = useQueryClient();
  const [creating, setCreating] = useState(false);
  const [made, setMade] = useState<{ token: string | undefined }>();
  const [name, setName] = useState("");
  const [role, setRole] = useState<Role>("viewer");
  const may = session.role === "admin";
  const refresh = () => void queries.invalidateQueries({ queryKey: ["operators"] });
  const query = useQuery({ queryKey: ["operators"], queryFn: () => admin.operators.list({ perPage: 100 }).page() });
  const changing = useMutation({
    mutationFn: (change: { id: string; role: Role }) => admin.operators.update(change.id, { role: change.role }),
    onSuccess: refresh,
  });
  const columns: readonly Column<Operator>[] = [
    { title: t.name, cell: (row) => <span className="break">{row.name}</span> },
    {
      title: t.role,
      cell: (row) => (
        <Select
          size="xs"
          w={120}
          aria-label={`${t.role}: ${row.name}`}
          data={[...roles]}
          value={row.role}
          allowDeselect={false}
          disabled={!may}
          onChange={(next) => changing.mutate({ id: row.id, role: next as Role })}
        />
      ),
    },
    { title: texts.common.created, wide: true, cell: (row) => <Time at={row.created_at} /> },
    {
      title: "",
      right: true,
      cell: (row) =>
        may && (
          <span className="toolbar end">
            <Confirm
              label={t.rotate}
              title={t.rotateTitle(row.name)}
              verb={t.rotate}
              danger={false}
              act={async () => setMade({ token: (await admin.operators.rotateToken(row.id)).token })}
              onDone={refresh}
            >
              {t.rotateText}
            </Confirm>
            <Confirm
              label={texts.common.delete}
              title={t.deleteTitle(row.name)}
              verb={t.deleteVerb}
              act={() => admin.operators.delete(row.id)}
              onDone={refresh}
            >
              {t.deleteText}
            </Confirm>
          </span>
        ),
    },
  ];
  const create = async () => {
    const { token } = await admin.operators.create({ name, role });
    setCreating(false);
    setName("");
    setMade({ token });
    refresh();
  };
  return (
    <div className="stack">
      {changing.error && <Problem error={changing.error} />}
      <Panel flush title={t.title} actions={may && <Button onClick={() => setCreating(true)}>{t.new}</Button>}>
        <List
          query={query}
          columns={columns}
          keyOf={(row) => row.id}
          label={t.title}
          empty={<Empty title={t.emptyTitle}>{t.empty}</Empty>}
        />
      </Panel>
      {creating && (
        <FormDialog
          title={t.new}
          verb={t.create}
          act={create}
          onClose={() => setCreating(false)}
          ready={name.trim() !== ""}
        >
          <TextInput
            label={t.name}
            value={name}
            onChange={(event) => setName(event.currentTarget.value)}
            data-autofocus
          />
          <Select
            label={t.role}
            description={t.roleHint}
            inputWrapperOrder={["label", "input", "description"]}
            data={[...roles]}
            value={role}
            allowDeselect={false}
            onChange={(next) => setRole(next as Role)}
          />
        </FormDialog>
      )}
      {made && <SecretOnce title={t.made} value={made.token} onClose={() => setMade(undefined)} />}
    </div>
  );
}
