import type { SystemStatus } from "@herald/client";
import { Alert, Progress, SimpleGrid, Stack, Text } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import { admin } from "../../api/clients.ts";
import { useRead } from "../../api/read.ts";
import { mono } from "../../parts/code.tsx";
import { count, Status, Time } from "../../parts/format.tsx";
import { type Column, Rows } from "../../parts/list.tsx";
import { Note, Panel } from "../../parts/page.tsx";
import { Problem } from "../../parts/problem.tsx";

const pollMs = 3_000;

type Stream = SystemStatus["streams"][number];
type Durable = SystemStatus["durables"][number];

const streamColumns: readonly Column<Stream>[] = [
  { title: "Name", cell: ({ name }) => mono(name) },
  { title: "Messages", right: true, cell: ({ messages }) => count(messages) },
  {
    title: "Fill",
    right: true,
    cell: ({ name, bytes, max_bytes }) => {
      const fill = max_bytes > 0 ? (bytes / max_bytes) * 100 : 0;
      return <Progress value={fill} miw={80} aria-label={`${name} is ${fill.toFixed(1)} % full`} />;
    },
  },
];

const durableColumns: readonly Column<Durable>[] = [
  { title: "Name", cell: ({ name }) => mono(name) },
  {
    title: "Waiting",
    right: true,
    cell: ({ pending }) => <span className={pending > 0 ? "warn" : ""}>{count(pending)}</span>,
  },
  { title: "In progress", right: true, cell: ({ in_progress }) => count(in_progress) },
];

const nameOf = ({ name }: { readonly name: string }) => name;

const Services = ({ status }: { readonly status: SystemStatus }) => (
  <SimpleGrid cols={{ base: 1, xs: 2, lg: 4 }}>
    {status.services.map(({ name, state, replicas }) => (
      <Panel
        key={name}
        title={
          <span className="with-icon">
            {name} <Status value={state} />
          </span>
        }
      >
        <ul className="plain-list">
          {replicas.map((replica) => (
            <li key={replica.instance}>
              <div className="running">
                <span className="cut mono">{replica.instance}</span>
                <Note>{replica.version}</Note>
                {replica.state === "ready" ? (
                  <Note>
                    started <Time at={replica.started_at} />
                  </Note>
                ) : (
                  <Status value={replica.state} />
                )}
              </div>
              {replica.failing.map((one) => (
                <Text c="var(--bad)" className="break" key={one.check}>
                  {one.check}: {one.reason}
                </Text>
              ))}
            </li>
          ))}
          {replicas.length === 0 && <li className="muted">No replicas are reporting.</li>}
        </ul>
      </Panel>
    ))}
  </SimpleGrid>
);

export default function StatusPage() {
  const { data, error, refetch } = useRead(["status"], (options) => admin.status(options), { everyMs: pollMs });
  if (!data) return error ? <Problem error={error} onRetry={() => void refetch()} /> : null;
  return (
    <Stack>
      {error && <Problem error={error} onRetry={() => void refetch()} />}
      {!data.broker.available && <Alert>The broker is unavailable: {data.broker.reason}</Alert>}
      <Services status={data} />
      {data.providers.length > 0 && (
        <Panel title="Providers that need attention">
          <ul className="plain-list">
            {data.providers.map((one) => (
              <li key={`${one.project_id}/${one.provider}/${one.reason}`} className="running">
                <span className="break">
                  <Link className="link" to={`/p/${one.project_id}/settings/providers`}>
                    {one.provider}
                  </Link>{" "}
                  {one.reason} <span className="muted">{one.host}</span>
                </span>
                <Note>
                  <Time at={one.since} />
                </Note>
                <Status value={one.state} />
              </li>
            ))}
          </ul>
        </Panel>
      )}
      {data.backlogs.length > 0 && (
        <Panel title="Projects whose sends wait for their turn">
          <ul className="plain-list">
            {data.backlogs.map(({ project_id, sends, since }) => (
              <li key={project_id} className="running">
                <Link className="link break" to={`/p/${project_id}`}>
                  {project_id}
                </Link>
                <Note>
                  since <Time at={since} />
                </Note>
                <span>{count(sends)}</span>
              </li>
            ))}
          </ul>
        </Panel>
      )}
      <SimpleGrid cols={{ base: 1, md: 2 }} style={{ alignItems: "start" }}>
        <Panel flush title="Streams">
          <Rows rows={data.streams} columns={streamColumns} keyOf={nameOf} label="Streams" />
        </Panel>
        <Panel flush title="Consumers">
          <Rows rows={data.durables} columns={durableColumns} keyOf={nameOf} label="Consumers" />
        </Panel>
      </SimpleGrid>
    </Stack>
  );
}
