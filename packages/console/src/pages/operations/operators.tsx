import type { NewOperator, Operator } from "@herald/client";
import { Select, TextInput } from "@mantine/core";
import { useState } from "react";
import { admin } from "../../api/clients.ts";
import { Confirm } from "../../parts/confirm.tsx";
import { FormDialog } from "../../parts/form.tsx";
import { Time } from "../../parts/format.tsx";
import { ManagedList, type NewProps } from "../../parts/managed-list.tsx";
import { useSession } from "../../session-context.tsx";
import { texts } from "../../texts/common.ts";
import { operationsTexts } from "../../texts/operations.ts";

const t = operationsTexts.operators;
const roles = ["viewer", "operator", "admin"] as const satisfies readonly Role[];
type Role = NewOperator["role"];

const NewOperatorForm = ({ onClose, onMade }: NewProps) => {
  const [name, setName] = useState("");
  const [role, setRole] = useState<Role>("viewer");
  const create = async () => onMade({ secret: (await admin.operators.create({ name, role })).token });
  return (
    <FormDialog title={t.new} verb={t.create} act={create} onClose={onClose} ready={name.trim() !== ""}>
      <TextInput label={t.name} value={name} onChange={(event) => setName(event.currentTarget.value)} data-autofocus />
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
  );
};

export default function Operators() {
  const { session } = useSession();
  const may = session.role === "admin";
  return (
    <ManagedList<Operator>
      title={t.title}
      queryKey={["operators"]}
      load={(page) => admin.operators.list({ perPage: 100 }).page(page)}
      keyOf={(row) => row.id}
      empty={{ title: t.emptyTitle, text: t.empty }}
      add={may && { label: t.new, Form: NewOperatorForm, made: t.made }}
      columns={({ refresh, change, showSecret }) => [
        {
          title: t.name,
          cell: (row) => (
            <span className="break" dir="auto">
              {row.name}
            </span>
          ),
        },
        {
          title: t.role,
          cell: (row) => (
            <Select
              size="xs"
              w={104}
              aria-label={`${t.role}: ${row.name}`}
              data={[...roles]}
              value={row.role}
              allowDeselect={false}
              disabled={!may}
              onChange={(next) => change(() => admin.operators.update(row.id, { role: next as Role }))}
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
                  act={async () => showSecret((await admin.operators.rotateToken(row.id)).token)}
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
      ]}
    />
  );
}
