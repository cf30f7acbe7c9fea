import type { SystemStatus } from "@herald/client";
import { Progress, Table } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { admin } from "../../api/clients.ts";
import { count, Status, Time } from "../../parts/format.tsx";
import { Panel, Problem } from "../../parts/page.tsx";
import { operationsTexts } from "../../texts/operations.ts";

const t = operationsTexts.status;
const pollMs = 3_000;

const Rows = ({ label, heads, children }: { label: string; heads: readonly string[]; children: ReactNode }) => (
  // biome-ignore lint/a11y/noNoninteractiveTabindex: scrolls by keyboard
  <section className="scroll" aria-label={label} tabIndex={0}>
    <Table className="table">
      <Table.Thead>
        <Table.Tr>
          {heads.map((head, index) => (
            <Table.Th key={head} className={index === 0 ? "" : "right"}>
              {head}
            </Table.Th>
          ))}
        </Table.Tr>
      </Table.Thead>
      <Table.Tbody>{children}</Table.Tbody>
    </Table>
  </section>
);

const stateWord = (state: string): string => (state === "ready" ? "ready" : "unready");

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
                    {t.up} <Time at={replica.started_at} />
                  </span>
                ) : (
                  <Status value={stateWord(replica.state)} />
                )}
              </div>
              {replica.failing.map((one) => (
                <p key={one.check} className="text bad break">
                  {one.check}: {one.reason}
                </p>
              ))}
            </li>
          ))}
          {replicas.length === 0 && <li className="muted">{t.noReplica}</li>}
        </ul>
      </Panel>
    ))}
  </div>
);

export default function StatusPage() {
  const { data, error, refetch } = useQuery({
    queryKey: ["status"],
    queryFn: ({ signal }) => admin.status({ signal }),
    refetchInterval: pollMs,
  });
  if (!data) return error ? <Problem error={error} onRetry={() => void refetch()} /> : null;
  return (
    <div className="stack">
      {error && <Problem error={error} onRetry={() => void refetch()} />}
      {!data.broker.available && (
        <div className="problem" role="alert">
          <p className="text bad">
            {t.broker}: {data.broker.reason}
          </p>
        </div>
      )}
      <Services status={data} />
      {data.providers.length > 0 && (
        <Panel title={t.providers}>
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
      <div className="columns two">
        <Panel flush title={t.streams}>
          <Rows label={t.streams} heads={[t.name, t.messages, t.fill]}>
            {data.streams.map((stream) => {
              const fill = stream.max_bytes > 0 ? (stream.bytes / stream.max_bytes) * 100 : 0;
              return (
                <Table.Tr key={stream.name}>
                  <Table.Td className="mono">{stream.name}</Table.Td>
                  <Table.Td className="right">{count(stream.messages)}</Table.Td>
                  <Table.Td style={{ minWidth: 110 }}>
                    <Progress value={fill} aria-label={t.fillOf(stream.name, fill.toFixed(1))} />
                  </Table.Td>
                </Table.Tr>
              );
            })}
          </Rows>
        </Panel>
        <Panel flush title={t.durables}>
          <Rows label={t.durables} heads={[t.name, t.pending, t.inProgress]}>
            {data.durables.map((durable) => (
              <Table.Tr key={durable.name}>
                <Table.Td className="mono break">{durable.name}</Table.Td>
                <Table.Td className={durable.pending > 0 ? "right warn" : "right"}>{count(durable.pending)}</Table.Td>
                <Table.Td className="right">{count(durable.in_progress)}</Table.Td>
              </Table.Tr>
            ))}
          </Rows>
        </Panel>
      </div>
    </div>
  );
}
