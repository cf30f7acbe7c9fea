import type { ProjectLimit } from "@herald/client";
import { Button, NumberInput, Text } from "@mantine/core";
import { useState } from "react";
import { admin, useProject } from "../../api/clients.ts";
import { useRead, useRefresh } from "../../api/read.ts";
import { FormDialog } from "../../parts/form.tsx";
import { bytes, count, duration } from "../../parts/format.tsx";
import { type Column, List } from "../../parts/list.tsx";
import { useHasRole } from "../../session-context.tsx";

/** The share of a limit from which its use is shown as a warning. */
const nearlyFull = 0.8;

const amount = (name: ProjectLimit["name"], value: number): string =>
  name === "queued-bytes" ? bytes(value) : count(value);

const Used = ({ name, limit, used }: ProjectLimit) =>
  used === undefined ? (
    <span className="muted">–</span>
  ) : (
    <span className={limit > 0 && used >= limit * nearlyFull ? "warn" : ""}>{amount(name, used)}</span>
  );

/** Sets a limit of the project, or takes it back. */
const ChangeLimit = ({ row }: { readonly row: ProjectLimit }) => {
  const { id } = useProject();
  const refresh = useRefresh(id, "limits");
  const [open, setOpen] = useState(false);
  const [value, setValue] = useState<number | string>("");
  const close = () => setOpen(false);
  const save = async () => {
    await admin.projects.changeLimits(id, { [row.name]: value === "" ? null : Number(value) });
    close();
    refresh();
  };
  return (
    <>
      <Button
        size="compact-sm"
        variant="default"
        aria-label={`Change: ${row.description}`}
        onClick={() => {
          setValue(row.limit === row.default ? "" : row.limit);
          setOpen(true);
        }}
      >
        Change
      </Button>
      {open && (
        <FormDialog title={row.description} verb="Save" act={save} onClose={close}>
          <NumberInput
            label="At most"
            description="Of all gateways together. Empty: the default."
            placeholder={String(row.default)}
            value={value}
            onChange={setValue}
            allowDecimal={false}
            allowNegative={false}
            thousandSeparator=","
            hideControls
            data-autofocus
          />
        </FormDialog>
      )}
    </>
  );
};

const columns: readonly Column<ProjectLimit>[] = [
  {
    title: "What is counted",
    long: true,
    cell: (row) => (
      <span className="row-link">
        <b>{row.description}</b>
        <span className={`muted break ${row.variable === undefined ? "" : "mono"}`}>{row.variable ?? "fixed"}</span>
      </span>
    ),
  },
  {
    title: "At most",
    right: true,
    cell: (row) => (
      <>
        {amount(row.name, row.limit)}{" "}
        <span className="muted nowrap">{row.seconds === undefined ? "" : `in ${duration(row.seconds)}`}</span>
        {row.limit !== row.default && (
          <Text component="div" size="xs" c="dimmed">
            default {amount(row.name, row.default)}
          </Text>
        )}
      </>
    ),
  },
  { title: "In use", right: true, cell: Used },
  {
    title: "Counted by",
    wide: true,
    cell: (row) => (row.counted_by === "gateway" ? "each gateway, its part" : "all services together"),
  },
];

export default function Limits() {
  const { id } = useProject();
  const may = useHasRole("admin");
  const all = may
    ? [...columns, { title: "", right: true, cell: (row) => <ChangeLimit row={row} /> } satisfies Column<ProjectLimit>]
    : columns;
  const query = useRead([id, "limits"], async (options) => ({ data: await admin.projects.limits(id, options) }), {
    everyMs: 5_000,
  });
  return (
    <List query={query} columns={all} keyOf={(row) => row.name} label="Limits">
      <Text c="dimmed" px="md" py={14}>
        Environment variables set the defaults. An admin of Herald can change the limits of this project.
      </Text>
    </List>
  );
}
