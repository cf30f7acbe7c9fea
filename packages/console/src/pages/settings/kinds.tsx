import type { DeclaredKind, KindDeclaration } from "@herald/client";
import { Group, NumberInput, Select } from "@mantine/core";
import { admin, useProject } from "../../api/clients.ts";
import type { FieldsOf, InputProps } from "../../parts/field-values.ts";
import { adding, Confirm, FormButton } from "../../parts/form.tsx";
import { List, RowLink } from "../../parts/list.tsx";
import { hoursText, quietHours } from "../../parts/quiet-hours.tsx";
import { useHasRoleHere } from "../../session-context.tsx";

type Declaration = KindDeclaration & { readonly kind: string };
type Cap = Omit<NonNullable<KindDeclaration["frequency_cap"]>, "count"> & { readonly count: number | string };

const noCap = "any number";
const capText = ({ frequency_cap: cap, critical }: DeclaredKind): string =>
  critical || cap === undefined ? noCap : `${cap.count} per ${cap.per}`;

const CapFields = ({ value, onChange, error }: InputProps<Cap>) => (
  <Group grow align="end">
    <NumberInput
      label="At most, for each person"
      placeholder={noCap}
      value={value.count}
      onChange={(count) => onChange({ ...value, count })}
      error={error}
      min={1}
      max={50}
      allowDecimal={false}
      hideControls
    />
    <Select
      label="In each"
      data={["hour", "day", "week"]}
      value={value.per}
      onChange={(per) => onChange({ ...value, per: per as Cap["per"] })}
      allowDeselect={false}
    />
  </Group>
);

const mayBeOff = { when: ({ critical }: { readonly critical?: unknown }) => critical !== true };

const fields: FieldsOf<KindDeclaration> = {
  title: { label: "Title", hint: "What people read where they switch it off.", placeholder: "Offers", required: true },
  critical: {
    label: "Critical",
    hint: "People cannot switch it off. Quiet hours and caps do not apply.",
    as: "switch",
  },
  on_by_default: {
    ...mayBeOff,
    label: "On by default",
    hint: "Off: only people who switch it on get it.",
    as: "switch",
  },
  frequency_cap: {
    ...mayBeOff,
    label: "At most, for each person",
    as: {
      input: CapFields,
      show: (cap) => cap ?? { count: "", per: "day" },
      read: ({ count, per }: Cap) => (count === "" ? undefined : { count: Number(count), per }),
    },
  },
  quiet_hours: { ...mayBeOff, ...quietHours(true) },
};
const newFields: FieldsOf<Declaration> = {
  kind: { label: "Kind", hint: "As your sends name it.", placeholder: "offers", required: true },
  ...fields,
};

export default function Kinds() {
  const { id } = useProject();
  const may = useHasRoleHere("admin");
  return (
    <List
      label="Kinds"
      queryKey={[id, "kinds", "list"]}
      read={({ page }) => admin.kinds.list(id, { perPage: 100 }).page(page)}
      keyOf={({ kind }) => kind}
      empty={{
        title: "No kinds declared",
        text: "Declare the kinds of notifications that people may switch off, or that have a cap.",
      }}
      actions={
        may && (
          <FormButton<Declaration>
            label="Declare a kind"
            button={adding}
            title="Declare a kind"
            verb="Save"
            fields={newFields}
            initial={{ on_by_default: true, critical: false }}
            act={({ kind, ...declaration }) => admin.kinds.put(id, kind, declaration)}
          />
        )
      }
      columns={[
        {
          title: "Kind",
          cell: (row) => <RowLink name={row.title} note={<span className="mono">{row.kind}</span>} />,
        },
        {
          title: "Without a choice",
          cell: ({ critical, on_by_default: on }) => (critical ? "always on" : on ? "on" : "off"),
        },
        { title: "For each person", wide: true, cell: capText },
        {
          title: "Quiet hours",
          wide: true,
          cell: (row) => (row.critical ? "none" : hoursText(row.quiet_hours, "the project's")),
        },
      ]}
      buttons={(row) =>
        may && (
          <>
            <FormButton<KindDeclaration>
              label="Change"
              button={{ "aria-label": `Change ${row.title}` }}
              title={`Change ${row.title}`}
              verb="Save"
              fields={fields}
              initial={row}
              act={(declaration) => admin.kinds.put(id, row.kind, declaration)}
            />
            <Confirm
              title={`Delete ${row.title}?`}
              verb="Delete the kind"
              act={() => admin.kinds.delete(id, row.kind)}
              about="Sends that name it then go to every device, any number of times."
            />
          </>
        )
      }
    />
  );
}
