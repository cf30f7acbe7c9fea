import type { NewOperator, Operator } from "@herald/client";
import { knownValues } from "@herald/client/known-values";
import { Select } from "@mantine/core";
import { admin } from "../../api/clients.ts";
import { useActs } from "../../api/read.ts";
import type { FieldsOf } from "../../parts/field-values.ts";
import { adding, Confirm, FormButton } from "../../parts/form.tsx";
import { count, Time } from "../../parts/format.tsx";
import { List } from "../../parts/list.tsx";
import { Note } from "../../parts/page.tsx";
import { useHasRole } from "../../session-context.tsx";
import { grantsField } from "./grants.tsx";

type Role = NewOperator["role"];

const fields: FieldsOf<NewOperator> = {
  name: { label: "Name", required: true },
  role: {
    label: "Role",
    hint: "A member has only the projects below. A viewer can read. An operator can also send, replay, and edit devices and topics. An admin can do everything.",
    as: "select",
    choices: knownValues.role,
  },
  projects: grantsField,
};

/** The number of an operator's grants; for admins a button that changes them. */
const Grants = ({ row, may }: { readonly row: Operator; readonly may: boolean }) => {
  const shown = row.projects.length === 0 ? "none" : count(row.projects.length);
  if (!may) return shown;
  return (
    <FormButton<Pick<NewOperator, "projects">>
      label={shown}
      button={{ "aria-label": `Projects of ${row.name}: ${shown}` }}
      title={`Projects of ${row.name}`}
      verb="Save"
      fields={{ projects: grantsField }}
      initial={row}
      act={(change) => admin.operators.update(row.id, change)}
    />
  );
};

export default function Operators() {
  const may = useHasRole("admin");
  const changing = useActs();
  return (
    <List<Operator>
      label="Operators"
      queryKey={["operators", "list"]}
      everyMs={false}
      read={({ page }) => admin.operators.list({ perPage: 100 }).page(page)}
      problem={changing.error}
      empty={{
        title: "No operators yet",
        text: "Give each person a token of their own: the admin token is for setting Herald up.",
      }}
      actions={
        may && (
          <FormButton<NewOperator>
            label="New operator"
            button={adding}
            title="New operator"
            verb="Create operator"
            fields={fields}
            initial={{ role: "viewer", projects: [] }}
            act={async (operator) => ({ secret: (await admin.operators.create(operator)).token })}
            secretTitle="Their token"
          />
        )
      }
      columns={[
        {
          title: "Name",
          cell: (row) => (
            <span className="break" dir="auto">
              {row.name}
              {row.groups && (
                <Note display="block">{row.groups.length === 0 ? "in no group" : `in ${row.groups.join(", ")}`}</Note>
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
                onChange={(next) => changing.mutate(() => admin.operators.update(row.id, { role: next as Role }))}
              />
              {row.effective && row.effective.groups.length > 0 && (
                <Note display="block">{`${row.effective.role} by group ${row.effective.groups.join(", ")}`}</Note>
              )}
            </>
          ),
        },
        { title: "Projects", right: true, cell: (row) => <Grants row={row} may={may} /> },
        { title: "Created", wide: true, cell: (row) => <Time at={row.created_at} /> },
      ]}
      buttons={(row) =>
        may && (
          <>
            <FormButton
              label="Sign out"
              title={`Sign ${row.name} out everywhere?`}
              verb="Sign out"
              act={() => admin.operators.signOut(row.id)}
              about="Every session ends within a second. The token stays valid."
            />
            <FormButton
              label="New token"
              title={`Make a new token for ${row.name}?`}
              verb="New token"
              act={async () => ({ secret: (await admin.operators.rotateToken(row.id)).token })}
              secretTitle="Their token"
              about="The earlier token and its sessions end within a second."
            />
            <Confirm
              title={`Delete ${row.name}?`}
              verb="Delete the operator"
              act={() => admin.operators.delete(row.id)}
              about="Their token and sessions end within a second."
            />
          </>
        )
      }
    />
  );
}
