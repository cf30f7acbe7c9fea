import type { SystemStatus } from "@herald/client";
import { Progress } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import { admin } from "../../api/clients.ts";
import { useRead } from "../../api/read.ts";
import { count, Status, Time } from "../../parts/format.tsx";
import { type Column, Rows } from "../../parts/list.tsx";
import { mono, Panel, Problem } from "../../parts/page.tsx";

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
  <div className="services">
    {status.services.map(({ name, state, replicas }) => (
      <Panel
        key={name}
        title={
          <span className="title-line">
            {name} <span className={`status ${state === "ready" ? "good" : "bad"}`}>{state.replaceAll("_", " ")}</span>
          </span>
        }
      >
        <ul className="plain-list">
          {replicas.map((replica) => (
            <li key={replica.instance}>
              <div className="running">
                <span className="cut mono">{replica.instance}</span>
                <span className="muted small">{replica.version}</span>
                {replica.state === "ready" ? (
                  <span className="muted small">
                    started <Time at={replica.started_at} />
                  </span>
                ) : (
                  <Status value="unready" />
                )}
              </div>
              {replica.failing.map((one) => (
                <p key={one.check} className="text bad break">
                  {one.check}: {one.reason}
                </p>
              ))}
            </li>
          ))}
          {replicas.length === 0 && <li className="muted">No replica reports.</li>}
        </ul>
      </Panel>
    ))}
  </div>
);

export default function StatusPage() {
  const { data, error, refetch } = useRead(["status"], (options) => admin.status(options), { everyMs: pollMs });
  if (!data) return error ? <Problem error={error} onRetry={() => void refetch()} /> : null;
  return (
    <div className="stack">
      {error && <Problem error={error} onRetry={() => void refetch()} />}
      {!data.broker.available && (
        <div className="problem" role="alert">
          <p className="text bad">The broker is unavailable: {data.broker.reason}</p>
        </div>
      )}
      <Services status={data} />
      {data.providers.length > 0 && (
        <Panel title="Providers that need a person">
          <ul className="plain-list">
            {data.providers.map((one) => (
              <li key={`${one.project_id}/${one.provider}/${one.reason}`} className="running">
                <span className="break">
                  <Link className="link" to={`/p/${one.project_id}/settings/providers`}>
                    {one.provider}
                  </Link>{" "}
                  {one.reason} <span className="muted">{one.host}</span>
                </span>
                <span className="muted small">
                  <Time at={one.since} />
                </span>
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
                <span className="muted small">
                  since <Time at={since} />
                </span>
                <span>{count(sends)}</span>
              </li>
            ))}
          </ul>
        </Panel>
      )}
      <div className="columns two">
        <Panel flush title="Streams">
          <Rows rows={data.streams} columns={streamColumns} keyOf={nameOf} label="Streams" />
        </Panel>
        <Panel flush title="Consumers">
          <Rows rows={data.durables} columns={durableColumns} keyOf={nameOf} label="Consumers" />
        </Panel>
      </div>
    </div>
  );
}
