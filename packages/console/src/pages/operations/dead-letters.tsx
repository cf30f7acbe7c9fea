import type { DeadLetter } from "@herald/client";
import { Button, Drawer, Group, Paper, Stack, Switch, Text, UnstyledButton } from "@mantine/core";
import { useMutation } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { admin, useProject } from "../../api/clients.ts";
import { useAct, useFirstRows, useRefresh } from "../../api/read.ts";
import { count, exactTime, Time } from "../../parts/format.tsx";
import { type Column, List } from "../../parts/list.tsx";
import { Facts, mono, Problem } from "../../parts/page.tsx";
import { RoleNote } from "../../parts/role-note.tsx";
import { SmallButton } from "../../parts/small-button.tsx";
import { useHasRole } from "../../session-context.tsx";

const Detail = ({ letter, onClose }: { readonly letter: DeadLetter; readonly onClose: () => void }) => {
  const { id } = useProject();
  const refresh = useRefresh("dead-letters");
  const mayWrite = useHasRole("operator");
  const replaying = useMutation({ mutationFn: () => admin.deadLetters.replay(letter.id), onSuccess: refresh });
  return (
    <Drawer opened onClose={onClose} title="Dead letter" position="right" size="lg">
      <Stack>
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
          <Paper withBorder p="sm" role="status">
            <strong className={replaying.data.status === "replayed" ? "good" : "warn"}>{replaying.data.status}</strong>
            <Text className="break">{replaying.data.detail}</Text>
          </Paper>
        )}
        {mayWrite && (
          <Button loading={replaying.isPending} onClick={() => replaying.mutate()}>
            Replay
          </Button>
        )}
      </Stack>
    </Drawer>
  );
};

export default function DeadLetters() {
  const { id } = useProject();
  const mayWrite = useHasRole("operator");
  const refresh = useRefresh("dead-letters");
  const [all, setAll] = useState(false);
  const [shown, setShown] = useState<DeadLetter>();
  const projectId = all ? undefined : id;
  const letters = useFirstRows(
    ["dead-letters", projectId],
    (options) => admin.deadLetters.list({ ...options, projectId }),
    50,
    4_000,
  );
  const waiting = letters.query.data?.data.filter(({ replayed_at }) => replayed_at === undefined) ?? [];
  const replaying = useAct(refresh);
  const columns: readonly Column<DeadLetter>[] = [
    {
      title: "Reason",
      long: true,
      cell: (row) => (
        <UnstyledButton fz="inherit" className="row-link" onClick={() => setShown(row)}>
          <b className="cut">{row.reason}</b>
          <span className="muted cut">{row.detail}</span>
        </UnstyledButton>
      ),
    },
    { title: "Consumer", wide: true, cell: (row) => row.durable },
    { title: "Message", wide: true, cell: (row) => row.message },
    { title: "Replayed", cell: (row) => <Time at={row.replayed_at} /> },
    { title: "Gave up", right: true, cell: (row) => <Time at={row.died_at} /> },
  ];
  return (
    <>
      <RoleNote needs="operator" can="replay messages" everywhere />
      <List
        actions={
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
                onClick={() => replaying.mutate(() => admin.deadLetters.replayMany(waiting.map(({ id }) => id)))}
              >
                {waiting.length === 1 ? "Replay it" : `Replay these ${waiting.length}`}
              </SmallButton>
            )}
          </Group>
        }
        {...letters}
        columns={columns}
        keyOf={(row) => row.id}
        label="Dead letters"
        empty={{
          title: "No dead letters",
          text: "Every message was processed. Messages that fail for good appear here. Fix the cause, then replay them.",
        }}
      >
        {replaying.error && <Problem error={replaying.error} />}
      </List>
      {shown && <Detail letter={shown} onClose={() => setShown(undefined)} />}
    </>
  );
}
