import type { DeadLetter } from "@herald/client";
import { Button, Group, Paper, Switch, Text } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { admin, useProject } from "../../api/clients.ts";
import { useAct, useActs } from "../../api/read.ts";
import { mono } from "../../parts/code.tsx";
import { count, exactTime, Time } from "../../parts/format.tsx";
import { type Column, List, RowLink } from "../../parts/list.tsx";
import { Facts } from "../../parts/page.tsx";
import { Problem } from "../../parts/problem.tsx";
import { SmallButton } from "../../parts/small-button.tsx";
import { useHasRole } from "../../session-context.tsx";

const Detail = ({ letter }: { readonly letter: DeadLetter }) => {
  const { id } = useProject();
  const mayWrite = useHasRole("operator");
  const replaying = useAct(() => admin.deadLetters.replay(letter.id));
  return (
    <>
      <Text className="break">{letter.detail}</Text>
      <Facts
        facts={{
          Id: mono(letter.id),
          Consumer: letter.durable,
          Message: letter.message,
          Reason: letter.reason,
          Subject: mono(letter.subject),
          Deliveries: count(letter.deliveries),
          "Gave up": exactTime(letter.died_at),
          Project: letter.project_id,
          Notification:
            letter.notification_id && letter.project_id === id ? (
              <Link className="link mono" to={`/p/${id}/notifications/${letter.notification_id}`}>
                {letter.notification_id}
              </Link>
            ) : (
              letter.notification_id
            ),
          Replayed: letter.replayed_at && `${exactTime(letter.replayed_at)} (${letter.replays ?? 1})`,
        }}
      />
      {replaying.error && <Problem error={replaying.error} />}
      {replaying.data && (
        <Paper p="sm" role="status">
          <strong className={replaying.data.status === "replayed" ? "good" : "warn"}>{replaying.data.status}</strong>
          <Text className="break">{replaying.data.detail}</Text>
        </Paper>
      )}
      {mayWrite && (
        <Button loading={replaying.isPending} onClick={() => replaying.mutate()}>
          Replay
        </Button>
      )}
    </>
  );
};

export default function DeadLetters() {
  const { id } = useProject();
  const mayWrite = useHasRole("operator");
  const [all, setAll] = useState(false);
  const projectId = all ? undefined : id;
  const replaying = useActs();
  const columns: readonly Column<DeadLetter>[] = [
    {
      title: "Reason",
      long: true,
      cell: (row, open) => <RowLink onOpen={open} name={row.reason} note={row.detail} />,
    },
    { title: "Consumer", wide: true, cell: (row) => row.durable },
    { title: "Message", wide: true, cell: (row) => row.message },
    { title: "Replayed", cell: (row) => <Time at={row.replayed_at} /> },
    { title: "Gave up", right: true, cell: (row) => <Time at={row.died_at} /> },
  ];
  const actions = (rows: readonly DeadLetter[]) => {
    const waiting = rows.filter(({ replayed_at }) => replayed_at === undefined).map(({ id: letter }) => letter);
    return (
      <Group gap={8}>
        <Switch
          size="xs"
          label="All projects"
          checked={all}
          onChange={(event) => setAll(event.currentTarget.checked)}
        />
        {waiting.length > 0 && mayWrite && (
          <SmallButton
            loading={replaying.isPending}
            onClick={() => replaying.mutate(() => admin.deadLetters.replayMany(waiting))}
          >
            {waiting.length === 1 ? "Replay it" : `Replay these ${waiting.length}`}
          </SmallButton>
        )}
      </Group>
    );
  };
  return (
    <List
      label="Dead letters"
      queryKey={["dead-letters", projectId]}
      list={(options) => admin.deadLetters.list({ ...options, projectId })}
      everyMs={4_000}
      actions={actions}
      problem={replaying.error}
      columns={columns}
      detail={{ title: () => "Dead letter", show: (letter) => <Detail letter={letter} /> }}
      empty={{
        title: "No dead letters",
        text: "Every message was processed. Messages that fail for good appear here. Fix the cause, then replay them.",
      }}
    />
  );
}
