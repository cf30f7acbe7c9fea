import { Table } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { Link, useParams } from "@tanstack/react-router";
import { useProject } from "../api/clients.ts";
import { exactTime, platformNames, Status } from "../parts/format.tsx";
import { Facts, Page, Panel, Problem } from "../parts/page.tsx";
import { texts } from "../texts/common.ts";
import { deviceTexts } from "../texts/devices.ts";
import { notificationTexts } from "../texts/notifications.ts";
import { traceTexts } from "../texts/trace.ts";

const t = traceTexts;

/** Why one device got one notification, or did not. */
export default function DeliveryTracePage() {
  const { id, herald } = useProject();
  const { notification = "", device = "" } = useParams({ strict: false }) as { notification?: string; device?: string };
  const { data, error, refetch } = useQuery({
    queryKey: [id, "trace", notification, device],
    queryFn: ({ signal }) => herald.notifications.trace(notification, device, { signal }),
    refetchInterval: 3_000,
  });
  return (
    <Page
      name={texts.nav.trace}
      title={
        <span className="title-line">
          {t.title} {data && <Status value={data.opened_at ? "opened" : data.status} />}
        </span>
      }
    >
      {error && <Problem error={error} onRetry={() => void refetch()} />}
      {data && (
        <div className="columns wide">
          <div className="stack">
            <Panel title={t.story}>
              <ol className="story">
                {data.explanation.map((sentence, index) => (
                  // biome-ignore lint/suspicious/noArrayIndexKey: a story is told in its order
                  <li key={index} className="break">
                    {sentence}
                  </li>
                ))}
              </ol>
            </Panel>
            {data.attempts.length > 0 && (
              <Panel flush title={t.attempts}>
                {/* biome-ignore lint/a11y/noNoninteractiveTabindex: scrolls by keyboard */}
                <section className="scroll" aria-label={t.attempts} tabIndex={0}>
                  <Table className="table">
                    <Table.Thead>
                      <Table.Tr>
                        <Table.Th>{t.attempt}</Table.Th>
                        <Table.Th>{t.outcome}</Table.Th>
                        <Table.Th>{t.provider}</Table.Th>
                        <Table.Th className="right">{t.at}</Table.Th>
                      </Table.Tr>
                    </Table.Thead>
                    <Table.Tbody>
                      {data.attempts.map((one) => (
                        <Table.Tr key={one.attempt}>
                          <Table.Td>{one.attempt}</Table.Td>
                          <Table.Td>
                            <Status value={one.outcome} /> {one.reason}
                          </Table.Td>
                          <Table.Td className="mono break">{one.provider_reason ?? one.provider_id}</Table.Td>
                          <Table.Td className="right nowrap">{exactTime(one.at)}</Table.Td>
                        </Table.Tr>
                      ))}
                    </Table.Tbody>
                  </Table>
                </section>
              </Panel>
            )}
          </div>
          <Panel title={t.which}>
            <Facts
              facts={[
                [
                  t.notification,
                  <Link key="n" className="link mono cut" to={`/p/${id}/notifications/${notification}`}>
                    {notification}
                  </Link>,
                ],
                [
                  deviceTexts.device,
                  <Link key="d" className="link mono cut" to={`/p/${id}/devices/${device}`}>
                    {device}
                  </Link>,
                ],
                [deviceTexts.platform, platformNames[data.device.platform] ?? data.device.platform],
                [deviceTexts.status, data.device.status],
                data.matched !== undefined && [
                  t.matched,
                  <code key="m" className="mono">
                    {data.matched}
                  </code>,
                ],
                data.user_id !== undefined && [deviceTexts.user, data.user_id],
                data.next_attempt_at !== undefined && [t.nextAttempt, exactTime(data.next_attempt_at)],
                data.opened_at !== undefined && [notificationTexts.opened, exactTime(data.opened_at)],
              ]}
            />
          </Panel>
        </div>
      )}
    </Page>
  );
}
