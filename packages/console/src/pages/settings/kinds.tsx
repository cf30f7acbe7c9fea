import type { DeclaredKind, KindDeclaration } from "@herald/client";
import { admin, useProject } from "../../api/clients.ts";
import type { FieldsOf } from "../../parts/field-values.ts";
import { adding, Confirm, FormButton } from "../../parts/form.tsx";
import { List } from "../../parts/list.tsx";
import { hoursText, quietHours } from "../../parts/quiet-hours.tsx";
import { useHasRoleHere } from "../../session-context.tsx";

type Cap = NonNullable<KindDeclaration["frequency_cap"]>;
/** As the form has it: a cap without a count is none. */
type Entered = Omit<KindDeclaration, "frequency_cap"> & Partial<Cap>;

const noCap = "any number";
const capText = ({ frequency_cap: cap, critical }: DeclaredKind): string =>
  critical || cap === undefined ? noCap : `${cap.count} per ${cap.per}`;

const mayBeOff = { when: ({ critical }: { readonly critical?: unknown }) => critical !== true };

const fields: FieldsOf<Entered> = {
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
  count: {
    ...mayBeOff,
    label: "At most, for each person",
    placeholder: noCap,
    as: "number",
    half: true,
    props: { min: 1, max: 50, hideControls: true },
  },
  per: { ...mayBeOff, label: "In each", as: "select", choices: ["hour", "day", "week"], half: true },
  quiet_hours: { ...mayBeOff, ...quietHours(true) },
};
const newFields: FieldsOf<Entered & { readonly kind: string }> = {
  kind: { label: "Kind", hint: "As your sends name it.", placeholder: "offers", required: true },
  ...fields,
};

const declarationOf = ({ count, per = "day", ...kind }: Entered): KindDeclaration => ({
  ...kind,
  ...(count !== undefined && { frequency_cap: { count, per } }),
});

export default function Kinds() {
  const { id } = useProject();
  const may = useHasRoleHere("admin");
  return (
    <List
      label="Kinds"
      queryKey={[id, "kinds", "list"]}
      everyMs={false}
      read={({ page }) => admin.kinds.list(id, { perPage: 100 }).page(page)}
      keyOf={({ kind }) => kind}
      empty={{
        title: "No kinds declared",
        text: "Declare the kinds of notifications that people may switch off, or that have a cap.",
      }}
      actions={
        may && (
          <FormButton<Entered & { readonly kind: string }>
            label="Declare a kind"
            button={adding}
            title="Declare a kind"
            verb="Save"
            fields={newFields}
            initial={{ on_by_default: true, critical: false, per: "day" }}
            act={({ kind, ...entered }) => admin.kinds.put(id, kind, declarationOf(entered))}
          />
        )
      }
      columns={[
        {
          title: "Kind",
          cell: (row) => (
            <span className="row-link">
              <b className="break">{row.title}</b>
              <span className="muted break mono">{row.kind}</span>
            </span>
          ),
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
            <FormButton<Entered>
              label="Change"
              button={{ "aria-label": `Change ${row.title}` }}
              title={`Change ${row.title}`}
              verb="Save"
              fields={fields}
              initial={{ per: "day", ...row, ...row.frequency_cap }}
              act={(entered) => admin.kinds.put(id, row.kind, declarationOf(entered))}
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
