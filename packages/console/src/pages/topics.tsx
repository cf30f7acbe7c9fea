import type { Topic } from "@herald/client";
import { Button, Checkbox, Group, Modal, Switch, TextInput } from "@mantine/core";
import { keepPreviousData, useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { useProject } from "../api/clients.ts";
import { usePollMs } from "../api/live.tsx";
import { problemsOf } from "../api/problems.ts";
import { Confirm } from "../parts/confirm.tsx";
import { useFilters } from "../parts/filters.tsx";
import { count, Time } from "../parts/format.tsx";
import { type Column, List } from "../parts/list.tsx";
import { Empty, Page, Panel, Problem } from "../parts/page.tsx";
import { useSession } from "../session-context.tsx";
import { texts } from "../texts/common.ts";
import { topicTexts } from "../texts/topics.ts";

const t = topicTexts;

const NewTopic = ({ onClose }: { readonly onClose: () => void }) => {
  const { id, herald } = useProject();
  const queries = useQueryClient();
  const [name, setName] = useState("");
  const [closed, setClosed] = useState(false);
  const making = useMutation({
    mutationFn: () => herald.topics.create({ name: name.trim(), closed }),
    onSuccess: () => {
      void queries.invalidateQueries({ queryKey: [id, "topics"] });
      onClose();
    },
  });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    making.mutate();
  };
  const named = problemsOf(making.error, "#/topic/name");
  return (
    <Modal opened onClose={onClose} title={t.new}>
      <form className="stack" onSubmit={submit}>
        <TextInput
          label={t.name}
          value={name}
          onChange={(event) => setName(event.currentTarget.value)}
          error={named}
          data-autofocus
        />
        <Checkbox
          label={t.closed}
          description={t.closedHint}
          checked={closed}
          onChange={(event) => setClosed(event.currentTarget.checked)}
        />
        {making.error && !named && <Problem error={making.error} />}
        <Group justify="flex-end" gap="xs">
          <Button variant="default" onClick={onClose}>
            {texts.common.cancel}
          </Button>
          <Button type="submit" loading={making.isPending} disabled={name.trim() === ""}>
            {t.create}
          </Button>
        </Group>
      </form>
    </Modal>
  );
};

export default function Topics() {
  const { id, herald } = useProject();
  const { session } = useSession();
  const { page, setPage } = useFilters();
  const queries = useQueryClient();
  const [creating, setCreating] = useState(false);
  const may = session.role !== "viewer";
  const refresh = () => void queries.invalidateQueries({ queryKey: [id, "topics"] });
  const query = useQuery({
    queryKey: [id, "topics", "list", page],
    queryFn: ({ signal }) => herald.topics.list({ signal, perPage: 25 }).page(page),
    placeholderData: keepPreviousData,
    refetchInterval: usePollMs(),
  });
  const closing = useMutation({
    mutationFn: ({ topic, closed }: { topic: string; closed: boolean }) => herald.topics.update(topic, { closed }),
    onSuccess: refresh,
  });
  const columns: readonly Column<Topic>[] = [
    {
      title: t.name,
      cell: (row) => <span className="break">{row.name}</span>,
    },
    { title: texts.nav.devices, right: true, cell: (row) => count(row.devices) },
    {
      title: t.closed,
      cell: (row) => (
        <Switch
          size="xs"
          aria-label={`${t.closed}: ${row.name}`}
          checked={row.closed}
          disabled={!may}
          onChange={(event) => closing.mutate({ topic: row.id, closed: event.currentTarget.checked })}
        />
      ),
    },
    { title: texts.common.created, wide: true, right: true, cell: (row) => <Time at={row.created_at} /> },
    {
      title: "",
      right: true,
      cell: (row) =>
        may && (
          <Confirm
            label={texts.common.delete}
            title={t.deleteTitle(row.name)}
            verb={t.deleteVerb}
            act={() => herald.topics.delete(row.id)}
            onDone={refresh}
          >
            {t.deleteText(count(row.devices))}
          </Confirm>
        ),
    },
  ];
  const create = may && <Button onClick={() => setCreating(true)}>{t.new}</Button>;
  return (
    <Page title={texts.nav.topics} name={texts.nav.topics} actions={create}>
      {closing.error && <Problem error={closing.error} />}
      <Panel flush>
        <List
          query={query}
          columns={columns}
          keyOf={(row) => row.id}
          label={texts.nav.topics}
          onPage={setPage}
          empty={
            <Empty title={t.emptyTitle} action={create}>
              {t.empty}
            </Empty>
          }
        />
      </Panel>
      {creating && <NewTopic onClose={() => setCreating(false)} />}
    </Page>
  );
}
