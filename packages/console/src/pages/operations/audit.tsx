import type { AuditFilters, AuditRow } from "@herald/client";
import { Alert, Button, Group, Paper, Stack, Text } from "@mantine/core";
import { useMutation, useQuery } from "@tanstack/react-query";
import { admin, useProject } from "../../api/clients.ts";
import { useProjectName } from "../../api/projects.ts";
import { Copyable, JsonCode, mono } from "../../parts/code.tsx";
import { ChoiceFilter, DayFilters, dayStart, TextFilter, useFilters } from "../../parts/filters.tsx";
import { count, exactTime, Time } from "../../parts/format.tsx";
import { Icon } from "../../parts/icon.tsx";
import { type Column, List, RowLink } from "../../parts/list.tsx";
import { Facts, Note } from "../../parts/page.tsx";
import { Problem } from "../../parts/problem.tsx";
import { SmallButton } from "../../parts/small-button.tsx";
import { useHasRole } from "../../session-context.tsx";

const State = ({ title, value }: { readonly title: string; readonly value: AuditRow["before"] }) =>
  value === undefined || value === null ? null : (
    <div>
      <Text component="h3" size="xs" c="dimmed">
        {title}
      </Text>
      <JsonCode value={value} />
    </div>
  );

const detail = {
  title: ({ sequence }: AuditRow) => `Audit row ${count(sequence)}`,
  show: (row: AuditRow) => (
    <>
      <Facts
        facts={{
          Action: mono(row.action),
          Target: mono(row.target),
          Operator: `${row.operator.name} (${row.operator.role})`,
          "Operator id": mono(row.operator.id),
          Project: mono(row.project_id),
          Address: mono(row.address),
          Request: mono(row.request_id),
          At: exactTime(row.at),
          Hash: <Copyable value={row.hash} />,
          "Hash of the row before": <Copyable value={row.previous_hash} />,
        }}
      />
      <State title="Before" value={row.before} />
      <State title="After" value={row.after} />
    </>
  ),
};

/** On the gateway's origin, so the browser sends the session cookie. */
const exportAddress = (filters: AuditFilters): string => {
  const given = Object.entries(filters).filter(([, value]) => value !== undefined);
  return `/admin/v1/audit/export?${new URLSearchParams(given as [string, string][])}`;
};

/** Checks the whole chain at the press of a button, and shows the result. */
const Check = ({ filters }: { readonly filters: AuditFilters }) => {
  const mayCheck = useHasRole("viewer");
  const checking = useMutation({ mutationFn: () => admin.audit.check() });
  const found = checking.data;
  return (
    <Stack px="md" py={14}>
      <Group gap={8}>
        <Note className="grow">
          Each change, sign-in and send of an operator, newest first. Each row has the hash of the row before it.
        </Note>
        {mayCheck && (
          <SmallButton loading={checking.isPending} onClick={() => checking.mutate()}>
            Check all rows
          </SmallButton>
        )}
        <Button component="a" href={exportAddress(filters)} download="audit.ndjson" size="compact-sm" variant="default">
          Export as NDJSON
        </Button>
      </Group>
      {checking.error && <Problem error={checking.error} />}
      {found?.valid && (
        <Paper p="sm" role="status">
          <strong className="good with-icon">
            <Icon name="check" size={16} /> {count(found.checked)} rows are unchanged and none is missing
          </strong>
          {found.head && (
            <Text component="div" c="dimmed" fz="xs">
              Keep the hash of row {count(found.head.sequence)} elsewhere, to prove later that no row before it changed:{" "}
              <Copyable value={found.head.hash} />
            </Text>
          )}
        </Paper>
      )}
      {found && !found.valid && (
        <Alert className="break">
          Row {count(found.problem?.sequence ?? found.checked + 1)} does not match: {found.problem?.detail}
        </Alert>
      )}
    </Stack>
  );
};

const OperatorFilter = () => {
  const { data } = useQuery({
    queryKey: ["operators"],
    queryFn: () => admin.operators.list({ perPage: 100 }).page(),
  });
  const named = Object.fromEntries(data?.data.map(({ id, name }) => [id, name]) ?? []);
  return <ChoiceFilter name="operator" label="Operator" values={{ root: "The admin token", ...named }} />;
};

export default function Audit() {
  const { id } = useProject();
  const name = useProjectName();
  const { search } = useFilters();
  const seesAll = useHasRole("viewer");
  const { operator, action, from, until } = search;
  const project = seesAll ? search.project : id;
  const filters: AuditFilters = {
    operator,
    action,
    project_id: project,
    created_after: dayStart(from),
    created_before: dayStart(until, 1),
  };
  const columns: readonly Column<AuditRow>[] = [
    {
      title: "Action",
      cell: (row, open) => <RowLink onOpen={open} name={row.action} note={row.target} />,
    },
    {
      title: "Operator",
      cell: (row) => (
        <span className="break" dir="auto">
          {row.operator.name} <Note>{row.operator.role}</Note>
        </span>
      ),
    },
    { title: "Address", wide: true, cell: (row) => mono(row.address) },
    { title: "Row", right: true, wide: true, cell: (row) => count(row.sequence) },
    { title: "At", right: true, cell: (row) => <Time at={row.at} /> },
  ];
  return (
    <List
      label="Audit log"
      queryKey={["audit", filters]}
      list={(options) => admin.audit.list({ ...options, ...filters })}
      atATime={100}
      everyMs={10_000}
      filters={
        <>
          {seesAll && <OperatorFilter />}
          <TextFilter name="action" label="Action" width={150} />
          {seesAll && <ChoiceFilter name="project" label="Project" values={{ [id]: name }} />}
          <DayFilters />
        </>
      }
      columns={columns}
      detail={detail}
      keyOf={(row) => row.event_id}
      unmatched="No audit rows match these filters."
      empty={{
        title: "No audit rows yet",
        text: "A row appears here within a second of each change, sign-in and send of an operator.",
      }}
    >
      <Check filters={filters} />
    </List>
  );
}
