import type { DeclaredKind, KindDeclaration } from "@herald/client";
import { Button, Group, NumberInput, Select, Switch } from "@mantine/core";
import { useState } from "react";
import { admin, useProject } from "../../api/clients.ts";
import { Confirm } from "../../parts/confirm.tsx";
import { Field } from "../../parts/field.tsx";
import { FormDialog } from "../../parts/form.tsx";
import { rowActions } from "../../parts/list.tsx";
import { ManagedList, type NewProps } from "../../parts/managed-list.tsx";
import { HoursFields, hoursText, type OwnHours } from "../../parts/quiet-hours.tsx";
import { RoleNote } from "../../parts/role-note.tsx";
import { useHasRoleHere } from "../../session-context.tsx";

type Window = NonNullable<KindDeclaration["frequency_cap"]>["per"];

const noCap = "any number";
const capText = ({ frequency_cap: cap, critical }: DeclaredKind): string =>
  critical || cap === undefined ? noCap : `${cap.count} per ${cap.per}`;

/** Declares a kind, or changes `declared`. */
const KindForm = ({ declared, onClose, onMade }: NewProps & { readonly declared?: DeclaredKind }) => {
  const { id } = useProject();
  const [kind, setKind] = useState(declared?.kind ?? "");
  const [title, setTitle] = useState(declared?.title ?? "");
  const [on, setOn] = useState(declared?.on_by_default ?? true);
  const [critical, setCritical] = useState(declared?.critical ?? false);
  const [count, setCount] = useState<number | string>(declared?.frequency_cap?.count ?? "");
  const [per, setPer] = useState((declared?.frequency_cap?.per ?? "day") as Window);
  const [hours, setHours] = useState(declared?.quiet_hours as OwnHours);
  const save = async () => {
    await admin.kinds.put(id, kind.trim(), {
      title,
      on_by_default: on,
      critical,
      ...(count !== "" && { frequency_cap: { count: Number(count), per } }),
      ...(hours !== undefined && { quiet_hours: hours }),
    });
    onMade();
  };
  return (
    <FormDialog
      title={declared ? `Change ${declared.title}` : "Declare a kind"}
      verb="Save"
      act={save}
      onClose={onClose}
      ready={kind.trim() !== "" && title.trim() !== ""}
    >
      {!declared && (
        <Field
          label="Kind"
          description="As your sends name it."
          placeholder="offers"
          value={kind}
          onChange={setKind}
          data-autofocus
        />
      )}
      <Field
        label="Title"
        description="What people read where they switch it off."
        placeholder="Offers"
        value={title}
        onChange={setTitle}
      />
      <Switch
        label="Critical"
        description="People cannot switch it off. Quiet hours and caps do not apply."
        checked={critical}
        onChange={(event) => setCritical(event.currentTarget.checked)}
      />
      {!critical && (
        <>
          <Switch
            label="On by default"
            description="Off: only people who switch it on get it."
            checked={on}
            onChange={(event) => setOn(event.currentTarget.checked)}
          />
          <Group grow align="end">
            <NumberInput
              label="At most, for each person"
              placeholder={noCap}
              value={count}
              onChange={setCount}
              min={1}
              max={50}
              allowDecimal={false}
              hideControls
            />
            <Select
              label="In each"
              data={["hour", "day", "week"]}
              value={per}
              onChange={(next) => setPer((next ?? "day") as Window)}
              allowDeselect={false}
            />
          </Group>
          <HoursFields value={hours} onChange={setHours} inherits />
        </>
      )}
    </FormDialog>
  );
};

const Change = ({ row, refresh }: { readonly row: DeclaredKind; readonly refresh: () => void }) => {
  const [open, setOpen] = useState(false);
  const close = () => setOpen(false);
  const done = () => {
    close();
    refresh();
  };
  return (
    <>
      <Button size="compact-sm" variant="default" aria-label={`Change ${row.title}`} onClick={() => setOpen(true)}>
        Change
      </Button>
      {open && <KindForm declared={row} onClose={close} onMade={done} />}
    </>
  );
};

export default function Kinds() {
  const { id } = useProject();
  const may = useHasRoleHere("admin");
  return (
    <>
      <RoleNote needs="admin" can="change anything here" />
      <ManagedList<DeclaredKind & { readonly id: string }>
        title="Kinds"
        queryKey={[id, "kinds"]}
        load={async (page) => {
          const found = await admin.kinds.list(id, { perPage: 100 }).page(page);
          return { ...found, data: found.data.map((one) => ({ ...one, id: one.kind })) };
        }}
        empty={{
          title: "No kinds declared",
          text: "Declare the kinds of notifications that people may switch off, or that have a cap.",
        }}
        add={may && { label: "Declare a kind", Form: KindForm, made: "" }}
        columns={({ refresh }) => [
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
          rowActions(
            (row) =>
              may && (
                <Group gap={8} justify="flex-end">
                  <Change row={row} refresh={refresh} />
                  <Confirm
                    label="Delete"
                    title={`Delete ${row.title}?`}
                    verb="Delete the kind"
                    act={() => admin.kinds.delete(id, row.kind)}
                    onDone={refresh}
                    about="Sends that name it then go to every device, any number of times."
                  />
                </Group>
              ),
          ),
        ]}
      />
    </>
  );
}
