import type { ProjectLimit } from "@herald/client";
import { Text } from "@mantine/core";
import { admin, useProject } from "../../api/clients.ts";
import { useRead } from "../../api/read.ts";
import { bytes, count, duration } from "../../parts/format.tsx";
import { type Column, List } from "../../parts/list.tsx";

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

const columns: readonly Column<ProjectLimit>[] = [
  {
    title: "What is counted",
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
      </>
    ),
  },
  { title: "In use", right: true, cell: Used },
  {
    title: "Counted by",
    wide: true,
    cell: (row) => (row.counted_by === "gateway" ? "each gateway" : "all services together"),
  },
];

export default function Limits() {
  const { id } = useProject();
  const query = useRead([id, "limits"], async (options) => ({ data: await admin.projects.limits(id, options) }), {
    everyMs: 5_000,
  });
  return (
    <List query={query} columns={columns} keyOf={(row) => row.name} label="Limits">
      <Text c="dimmed" px="md" py={14}>
        The same limits apply to every project. An environment variable sets each limit that is not fixed.
      </Text>
    </List>
  );
}
