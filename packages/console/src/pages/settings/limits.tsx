import type { ProjectLimit } from "@herald/client";
import { useQuery } from "@tanstack/react-query";
import { admin, useProject } from "../../api/clients.ts";
import { count, duration } from "../../parts/format.tsx";
import { type Column, List } from "../../parts/list.tsx";
import { Panel } from "../../parts/page.tsx";
import { settingsTexts } from "../../texts/settings.ts";

const t = settingsTexts.limits;
/** From here on there is little room left. */
const nearlyFull = 0.8;

const Used = ({ limit, used }: ProjectLimit) =>
  used === undefined ? (
    <span className="muted">{t.unknown}</span>
  ) : (
    <span className={limit > 0 && used >= limit * nearlyFull ? "warn" : ""}>{count(used)}</span>
  );

const columns: readonly Column<ProjectLimit>[] = [
  {
    title: t.limit,
    cell: (row) => (
      <span className="row-link">
        <b>{row.description}</b>
        <span className="muted mono break">{row.variable}</span>
      </span>
    ),
  },
  {
    title: t.max,
    right: true,
    cell: (row) => (
      <>
        {count(row.limit)}{" "}
        <span className="muted nowrap">{row.seconds === undefined ? "" : t.within(duration(row.seconds))}</span>
      </>
    ),
  },
  { title: t.used, right: true, cell: Used },
  { title: t.countedBy, wide: true, cell: (row) => t.counters[row.counted_by] ?? row.counted_by },
];

export default function Limits() {
  const { id } = useProject();
  const query = useQuery({
    queryKey: [id, "limits"],
    queryFn: async ({ signal }) => ({ data: await admin.projects.limits(id, { signal }) }),
    refetchInterval: 5_000,
  });
  return (
    <Panel flush title={t.title}>
      <p className="inside muted text">{t.about}</p>
      <List query={query} columns={columns} keyOf={(row) => row.name} label={t.title} empty={null} />
    </Panel>
  );
}
