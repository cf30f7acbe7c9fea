import type { DeadLetter } from "@herald/client";
import { Button, Drawer, Switch } from "@mantine/core";
import { keepPreviousData, useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { admin, useProject } from "../../api/clients.ts";
import { useFilters } from "../../parts/filters.tsx";
import { count, exactTime, Time } from "../../parts/format.tsx";
import { type Column, List } from "../../parts/list.tsx";
import { Empty, Facts, Panel, Problem } from "../../parts/page.tsx";
import { useSession } from "../../session-context.tsx";
import { texts } from "../../texts/common.ts";
import { operationsTexts } from "../../texts/operations.ts";
import { traceTexts } from "../../texts/trace.ts";

const t = operationsTexts;

const Detail = ({ letter, onClose }: { readonly letter: DeadLetter; readonly onClose: () => void }) => {
  const { id } = useProject();
  const queries = useQueryClient();
  const { session } = useSession();
  const replaying = useMutation({
    mutationFn: () => admin.deadLetters.replay(letter.id),
    onSuccess: () => queries.invalidateQueries({ queryKey: ["dead-letters"] }),
  });
  return (
    <Drawer opened onClose={onClose} title={t.letter} position="right" size="lg">
      <div className="stack">
        <p className="text break">{letter.detail}</p>
        <Facts
          facts={[
            [
              texts.common.id,
              <span key="i" className="mono">
                {letter.id}
              </span>,
            ],
            [t.durable, letter.durable],
            letter.message !== undefined && [t.message, letter.message],
            [t.reason, letter.reason],
            [
              t.subject,
              <span key="s" className="mono">
                {letter.subject}
              </span>,
            ],
            [t.deliveries, count(letter.deliveries)],
            [t.died, exactTime(letter.died_at)],
            letter.project_id !== undefined && [texts.nav.project, letter.project_id],
            letter.notification_id !== undefined && [
              traceTexts.notification,
              letter.project_id === id ? (
                <Link key="n" className="link mono" to={`/p/${id}/notifications/${letter.notification_id}`}>
                  {letter.notification_id}
                </Link>
              ) : (
                letter.notification_id
              ),
            ],
            letter.replayed_at !== undefined && [
              t.replayed,
              `${exactTime(letter.replayed_at)} (${letter.replays ?? 1})`,
            ],
          ]}
        />
        {replaying.error && <Problem error={replaying.error} />}
        {replaying.data && (
          <div className="test-result" role="status">
            <strong className={replaying.data.status === "replayed" ? "good" : "warn"}>{replaying.data.status}</strong>
            <p className="text break">{replaying.data.detail}</p>
          </div>
        )}
        {session.role !== "viewer" && (
          <Button loading={replaying.isPending} onClick={() => replaying.mutate()}>
            {t.replay}
          </Button>
        )}
      </div>
    </Drawer>
  );
};

export default function DeadLetters() {
  const { id } = useProject();
  const { session } = useSession();
  const { page, setPage } = useFilters();
  const queries = useQueryClient();
  const [all, setAll] = useState(false);
  const [shown, setShown] = useState<DeadLetter>();
  const query = useQuery({
    queryKey: ["dead-letters", "list", all, id, page],
    queryFn: async () => {
      const found = await admin.deadLetters.list({ perPage: 50 }).page(page);
      return all ? found : { ...found, data: found.data.filter((one) => one.project_id === id) };
    },
    placeholderData: keepPreviousData,
    refetchInterval: 4_000,
  });
  const waiting = query.data?.data.filter(({ replayed_at }) => replayed_at === undefined) ?? [];
  const replaying = useMutation({
    mutationFn: () => admin.deadLetters.replayMany(waiting.map((one) => one.id)),
    onSuccess: () => queries.invalidateQueries({ queryKey: ["dead-letters"] }),
  });
  const columns: readonly Column<DeadLetter>[] = [
    {
      title: t.reason,
      cell: (row) => (
        <button type="button" className="text-button row-link" onClick={() => setShown(row)}>
          <b className="cut">{row.reason}</b>
          <span className="muted cut">{row.detail}</span>
        </button>
      ),
    },
    { title: t.durable, wide: true, cell: (row) => row.durable },
    { title: t.message, wide: true, cell: (row) => row.message },
    { title: t.replayed, cell: (row) => <Time at={row.replayed_at} /> },
    { title: t.died, right: true, cell: (row) => <Time at={row.died_at} /> },
  ];
  return (
    <Panel
      flush
      title={t.deadLetters}
      actions={
        <span className="toolbar">
          <Switch
            size="xs"
            label={t.allProjects}
            checked={all}
            onChange={(event) => setAll(event.currentTarget.checked)}
          />
          {waiting.length > 0 && session.role !== "viewer" && (
            <Button
              size="compact-sm"
              variant="default"
              loading={replaying.isPending}
              onClick={() => replaying.mutate()}
            >
              {t.replayAll(waiting.length)}
            </Button>
          )}
        </span>
      }
    >
      {replaying.error && <Problem error={replaying.error} />}
      <List
        query={query}
        columns={columns}
        keyOf={(row) => row.id}
        label={t.deadLetters}
        onPage={setPage}
        empty={<Empty title={t.noneTitle}>{t.none}</Empty>}
      />
      {shown && <Detail letter={shown} onClose={() => setShown(undefined)} />}
    </Panel>
  );
}
