import type { NewOperator, Operator } from "@herald/client";
import { knownValues } from "@herald/client/known-values";
import { Group, Select, Text } from "@mantine/core";
import { useState } from "react";
import { admin } from "../../api/clients.ts";
import { Confirm } from "../../parts/confirm.tsx";
import { Field } from "../../parts/field.tsx";
import { FormDialog } from "../../parts/form.tsx";
import { count, Time } from "../../parts/format.tsx";
import { rowActions } from "../../parts/list.tsx";
import { ManagedList, type NewProps } from "../../parts/managed-list.tsx";
import { RoleNote } from "../../parts/role-note.tsx";
import { SmallButton } from "../../parts/small-button.tsx";
import { useHasRole } from "../../session-context.tsx";
import { type Grant, GrantFields, GrantsDialog } from "./grants.tsx";

type Role = NewOperator["role"];

const NewOperatorForm = ({ onClose, onMade }: NewProps) => {
  const [name, setName] = useState("");
  const [role, setRole] = useState<Role>("viewer");
  const [projects, setProjects] = useState<Grant[]>([]);
  const create = async () => onMade({ secret: (await admin.operators.create({ name, role, projects })).token });
  return (
    <FormDialog title="New operator" verb="Create operator" act={create} onClose={onClose} ready={name.trim() !== ""}>
      <Field label="Name" value={name} onChange={setName} data-autofocus />
      <Select
        label="Role"
        description="A member has only the projects below. A viewer can read. An operator can also send, replay, and edit devices and topics. An admin can do everything."
        data={knownValues.role}
        value={role}
        allowDeselect={false}
        onChange={(next) => setRole(next as Role)}
      />
      <GrantFields value={projects} onChange={setProjects} />
    </FormDialog>
  );
};

/** The number of an operator's grants; for admins a button that changes them. */
const Grants = ({
  row,
  may,
  refresh,
}: {
  readonly row: Operator;
  readonly may: boolean;
  readonly refresh: () => void;
}) => {
  const [open, setOpen] = useState(false);
  const shown = row.projects.length === 0 ? "none" : count(row.projects.length);
  if (!may) return shown;
  return (
    <>
      <SmallButton aria-label={`Projects of ${row.name}: ${shown}`} onClick={() => setOpen(true)}>
        {shown}
      </SmallButton>
      {open && (
        <GrantsDialog
          operator={row}
          onClose={() => setOpen(false)}
          onDone={() => {
            setOpen(false);
            refresh();
          }}
        />
      )}
    </>
  );
};

export default function Operators() {
  const may = useHasRole("admin");
  return (
    <>
      <RoleNote needs="admin" can="change operators" everywhere />
      <ManagedList<Operator>
        title="Operators"
        queryKey={["operators"]}
        load={(page) => admin.operators.list({ perPage: 100 }).page(page)}
        empty={{
          title: "No operators yet",
          text: "Give each person a token of their own: the admin token is for setting Herald up.",
        }}
        add={may && { label: "New operator", Form: NewOperatorForm, made: "Their token" }}
        columns={({ refresh, change, showSecret }) => [
          {
            title: "Name",
            cell: (row) => (
              <span className="break" dir="auto">
                {row.name}
                {row.groups && (
                  <Text component="div" size="xs" c="dimmed">
                    {row.groups.length === 0 ? "in no group" : `in ${row.groups.join(", ")}`}
                  </Text>
                )}
              </span>
            ),
          },
          {
            title: "Role",
            cell: (row) => (
              <>
                <Select
                  size="xs"
                  w={104}
                  aria-label={`Role: ${row.name}`}
                  data={knownValues.role}
                  value={row.role}
                  allowDeselect={false}
                  disabled={!may}
                  onChange={(next) => change(() => admin.operators.update(row.id, { role: next as Role }))}
                />
                {row.effective && row.effective.groups.length > 0 && (
                  <Text component="div" size="xs" c="dimmed">
                    {`${row.effective.role} by group ${row.effective.groups.join(", ")}`}
                  </Text>
                )}
              </>
            ),
          },
          { title: "Projects", right: true, cell: (row) => <Grants row={row} may={may} refresh={refresh} /> },
          { title: "Created", wide: true, cell: (row) => <Time at={row.created_at} /> },
          rowActions(
            (row) =>
              may && (
                <Group gap={8} justify="flex-end">
                  <Confirm
                    label="Sign out"
                    title={`Sign ${row.name} out everywhere?`}
                    verb="Sign out"
                    danger={false}
                    act={() => admin.operators.signOut(row.id)}
                    onDone={refresh}
                    about="Every session ends within a second. The token stays valid."
                  />
                  <Confirm
                    label="New token"
                    title={`Make a new token for ${row.name}?`}
                    verb="New token"
                    danger={false}
                    act={async () => showSecret((await admin.operators.rotateToken(row.id)).token)}
                    onDone={refresh}
                    about="The earlier token and its sessions end within a second."
                  />
                  <Confirm
                    title={`Delete ${row.name}?`}
                    verb="Delete the operator"
                    act={() => admin.operators.delete(row.id)}
                    onDone={refresh}
                    about="Their token and sessions end within a second."
                  />
                </Group>
              ),
          ),
        ]}
      />
    </>
  );
}
