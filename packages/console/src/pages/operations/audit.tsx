import type { AuditFilters, AuditRow } from "@herald/client";
import { Button, Drawer } from "@mantine/core";
import { keepPreviousData, useMutation, useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { admin, useProject } from "../../api/clients.ts";
import { useProjectName } from "../../api/projects.ts";
import { firstRows } from "../../api/rows.ts";
import { ChoiceFilter, dayStart, TextFilter, useFilters } from "../../parts/filters.tsx";
import { count, exactTime, Time } from "../../parts/format.tsx";
import { Icon } from "../../parts/icon.tsx";
import { type Column, List } from "../../parts/list.tsx";
import { Copyable, Empty, Facts, Panel, Problem } from "../../parts/page.tsx";
import { texts } from "../../texts/common.ts";
import { notificationTexts } from "../../texts/notifications.ts";
import { operationsTexts } from "../../texts/operations.ts";

const t = operationsTexts.audit;
/** Rows are read by key alone, so they are not counted. */
const rowsAtATime = 100;

const mono = (value: string) => <span className="mono break">{value}</span>;

const State = ({ title, value }: { readonly title: string; readonly value: AuditRow["before"] }) =>
  value === undefined || value === null ? null : (
    <div>
      <h3 className="small muted">{title}</h3>
      <pre className="code">{JSON.stringify(value, null, 2)}</pre>
    </div>
  );

const Detail = ({ row, onClose }: { readonly row: AuditRow; readonly onClose: () => void }) => (
  <Drawer opened onClose={onClose} title={t.row(count(row.sequence))} position="right" size="lg">
    <div className="stack">
      <Facts
        facts={[
          [t.action, mono(row.action)],
          [t.target, mono(row.target)],
          [t.operator, `${row.operator.name} (${row.operator.role})`],
          [t.operatorId, mono(row.operator.id)],
          row.project_id !== undefined && [texts.nav.project, mono(row.project_id)],
          [t.address, mono(row.address)],
          row.request_id !== undefined && [texts.errors.request, mono(row.request_id)],
          [t.at, exactTime(row.at)],
          [t.hash, <Copyable key="h" value={row.hash} />],
          [t.previousHash, <Copyable key="p" value={row.previous_hash} />],
        ]}
      />
      <State title={t.before} value={row.before} />
      <State title={t.after} value={row.after} />
    </div>
  </Drawer>
);

/** Below the gateway's origin, so the session's cookie goes with it. */
const exportAddress = (filters: AuditFilters): string => {
  const given = Object.entries(filters).filter(([, value]) => value !== undefined);
  return `/admin/v1/audit/export?${new URLSearchParams(given as [string, string][])}`;
};

/** Checks the whole chain when it is asked to, and says what it found. */
const Check = ({ filters }: { readonly filters: AuditFilters }) => {
  const checking = useMutation({ mutationFn: () => admin.audit.check() });
  const found = checking.data;
  return (
    <div className="inside stack">
      <div className="toolbar">
        <span className="muted small grow">{t.about}</span>
        <Button size="compact-sm" variant="default" loading={checking.isPending} onClick={() => checking.mutate()}>
          {t.check}
        </Button>
        <Button component="a" href={exportAddress(filters)} download="audit.ndjson" size="compact-sm" variant="default">
          {t.export}
        </Button>
      </div>
      {checking.error && <Problem error={checking.error} />}
      {found?.valid && (
        <div className="test-result" role="status">
          <strong className="good with-icon">
            <Icon name="check" size={16} /> {t.valid(count(found.checked))}
          </strong>
          {found.head && (
            <p className="text muted small">
              {t.head(count(found.head.sequence))} <Copyable value={found.head.hash} />
            </p>
          )}
        </div>
      )}
      {found && !found.valid && (
        <div className="problem" role="alert">
          <p className="text bad break">
            {t.invalid(count(found.problem?.sequence ?? found.checked + 1))}: {found.problem?.detail}
          </p>
        </div>
      )}
    </div>
  );
};

const OperatorFilter = () => {
  const { data } = useQuery({
    queryKey: ["operators"],
    queryFn: () => admin.operators.list({ perPage: 100 }).page(),
  });
  const named = Object.fromEntries(data?.data.map(({ id, name }) => [id, name]) ?? []);
  return <ChoiceFilter name="operator" label={t.operator} values={{ root: t.root, ...named }} />;
};

export default function Audit() {
  const { id } = useProject();
  const name = useProjectName();
  const { search } = useFilters();
  const [shown, setShown] = useState<AuditRow>();
  const [limit, setLimit] = useState(rowsAtATime);
  const { operator, action, project, from, until } = search;
  const filters: AuditFilters = {
    operator,
    action,
    project_id: project,
    created_after: dayStart(from),
    created_before: dayStart(until, 1),
  };
  const query = useQuery({
    queryKey: ["audit", filters, limit],
    queryFn: ({ signal }) => firstRows(admin.audit.list({ signal, perPage: rowsAtATime, ...filters }), limit),
    placeholderData: keepPreviousData,
    refetchInterval: 10_000,
  });
  const columns: readonly Column<AuditRow>[] = [
    {
      title: t.action,
      cell: (row) => (
        <button type="button" className="text-button row-link" onClick={() => setShown(row)}>
          <b className="cut">{row.action}</b>
          <span className="muted cut">{row.target}</span>
        </button>
      ),
    },
    {
      title: t.operator,
      cell: (row) => (
        <span className="break" dir="auto">
          {row.operator.name} <span className="muted small">{row.operator.role}</span>
        </span>
      ),
    },
    { title: t.address, wide: true, cell: (row) => mono(row.address) },
    { title: t.number, right: true, wide: true, cell: (row) => count(row.sequence) },
    { title: t.at, right: true, cell: (row) => <Time at={row.at} /> },
  ];
  const filtered = Object.values(filters).some((value) => value !== undefined);
  return (
    <Panel
      flush
      filters={
        <>
          <OperatorFilter />
          <TextFilter name="action" label={t.action} width={150} />
          <ChoiceFilter name="project" label={texts.nav.project} values={{ [id]: name }} />
          <TextFilter name="from" label={notificationTexts.since} type="date" width={172} />
          <TextFilter name="until" label={notificationTexts.until} type="date" width={172} />
        </>
      }
    >
      <Check filters={filters} />
      <List
        query={query}
        columns={columns}
        keyOf={(row) => row.event_id}
        label={t.title}
        empty={filtered ? <Empty title={t.emptyFiltered} /> : <Empty title={t.emptyTitle}>{t.empty}</Empty>}
      />
      {query.data?.more && (
        <nav className="pager" aria-label={t.title}>
          <span className="grow" />
          <Button
            size="compact-sm"
            variant="default"
            loading={query.isPlaceholderData}
            onClick={() => setLimit(limit + rowsAtATime)}
          >
            {t.more(rowsAtATime)}
          </Button>
        </nav>
      )}
      {shown && <Detail row={shown} onClose={() => setShown(undefined)} />}
    </Panel>
  );
}
