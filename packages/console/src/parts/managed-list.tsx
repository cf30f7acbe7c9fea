import { Button } from "@mantine/core";
import { keepPreviousData, useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { type ComponentType, useState } from "react";
import { useFilters } from "./filters.tsx";
import { type Column, List, type ListPage } from "./list.tsx";
import { Empty, Panel, Problem } from "./page.tsx";
import { SecretOnce } from "./secret.tsx";

/** Undefined where the answer that had it was lost. */
type Secret = string | undefined;

export type NewProps = {
  readonly onClose: () => void;
  /** Shows the secret of what was made, where it has one. */
  readonly onMade: (made?: { readonly secret: Secret }) => void;
};

/** What a row can do. */
export type RowTools = {
  readonly refresh: () => void;
  readonly showSecret: (secret: Secret) => void;
  /** Does it at once; what the API refuses is said above the list. */
  readonly change: (act: () => Promise<unknown>) => void;
};

type Props<Row> = {
  readonly title: string;
  readonly queryKey: readonly unknown[];
  readonly load: (page: number) => Promise<ListPage<Row>>;
  readonly columns: (tools: RowTools) => readonly Column<Row>[];
  readonly keyOf: (row: Row) => string;
  readonly empty: { readonly title: string; readonly text: string };
  /** Absent for those who may make none: its button, the form behind it, and the title of the secret. */
  readonly add?: { readonly label: string; readonly Form: ComponentType<NewProps>; readonly made: string } | false;
};

/** A list to which people add, whose rows they change: tokens, webhooks, keys, operators. */
export function ManagedList<Row>({ title, queryKey, load, columns, keyOf, empty, add }: Props<Row>) {
  const queries = useQueryClient();
  const { page, setPage } = useFilters();
  const [creating, setCreating] = useState(false);
  const [shown, setShown] = useState<{ readonly secret: Secret }>();
  const refresh = () => void queries.invalidateQueries({ queryKey });
  const query = useQuery({
    queryKey: [...queryKey, "list", page],
    queryFn: () => load(page),
    placeholderData: keepPreviousData,
  });
  const changing = useMutation({ mutationFn: (act: () => Promise<unknown>) => act(), onSuccess: refresh });
  const tools: RowTools = { refresh, showSecret: (secret) => setShown({ secret }), change: changing.mutate };
  const onMade: NewProps["onMade"] = (made) => {
    setCreating(false);
    setShown(made);
    refresh();
  };
  return (
    <div className="stack">
      {changing.error && <Problem error={changing.error} />}
      <Panel flush title={title} actions={add && <Button onClick={() => setCreating(true)}>{add.label}</Button>}>
        <List
          query={query}
          columns={columns(tools)}
          keyOf={keyOf}
          label={title}
          onPage={setPage}
          empty={<Empty title={empty.title}>{empty.text}</Empty>}
        />
      </Panel>
      {add && creating && <add.Form onClose={() => setCreating(false)} onMade={onMade} />}
      {add && shown && <SecretOnce title={add.made} value={shown.secret} onClose={() => setShown(undefined)} />}
    </div>
  );
}
