import type { ProjectLimit } from "@herald/client";
import { Text } from "@mantine/core";
import { admin, useProject } from "../../api/clients.ts";
import { FormButton } from "../../parts/form.tsx";
import { bytes, count, duration } from "../../parts/format.tsx";
import { List } from "../../parts/list.tsx";
import { Note } from "../../parts/page.tsx";
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
  return (
    <FormButton<Record<string, number | null>>
      label="Change"
      button={{ "aria-label": `Change: ${row.description}` }}
      title={row.description}
      verb="Save"
      fields={{
        [row.name]: {
          label: "At most",
          hint: "Of all gateways together. Empty: the default.",
          placeholder: String(row.default),
          as: "number",
          empty: null,
          props: { allowNegative: false, thousandSeparator: ",", hideControls: true },
        },
      }}
      initial={row.limit === row.default ? {} : { [row.name]: row.limit }}
      act={(limit) => admin.projects.changeLimits(id, limit)}
    />
  );
};

export default function Limits() {
  const { id } = useProject();
  const may = useHasRole("admin");
  return (
    <List<ProjectLimit>
      label="Limits"
      queryKey={[id, "limits"]}
      read={async ({ signal }) => ({ data: await admin.projects.limits(id, { signal }) })}
      everyMs={5_000}
      keyOf={(row) => row.name}
      columns={[
        {
          title: "What is counted",
          long: true,
          cell: (row) => (
            <span className="row-link">
              <b>{row.description}</b>
              <span className={`muted break ${row.variable === undefined ? "" : "mono"}`}>
                {row.variable ?? "fixed"}
              </span>
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
              {row.limit !== row.default && <Note display="block">default {amount(row.name, row.default)}</Note>}
            </>
          ),
        },
        { title: "In use", right: true, cell: Used },
        {
          title: "Counted by",
          wide: true,
          cell: (row) => (row.counted_by === "gateway" ? "each gateway, its part" : "all services together"),
        },
      ]}
      buttons={may ? (row) => <ChangeLimit row={row} /> : undefined}
    >
      <Text c="dimmed" px="md" py={14}>
        Environment variables set the defaults. An admin of Herald can change the limits of this project.
      </Text>
    </List>
  );
}
