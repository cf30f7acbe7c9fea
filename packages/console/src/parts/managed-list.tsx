import { Button, Stack } from "@mantine/core";
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { type ComponentType, useState } from "react";
import { useAct, useRefresh } from "../api/read.ts";
import { useFilters } from "./filters.tsx";
import { type Column, List, type ListPage } from "./list.tsx";
import { type EmptyProps, Problem } from "./page.tsx";
import { SecretOnce } from "./secret.tsx";

/** Undefined if the answer that contained it was lost. */
type Secret = string | undefined;

export type NewProps = {
  readonly onClose: () => void;
  /** Shows the secret of the new row if it has one. */
  readonly onMade: (made?: { readonly secret: Secret }) => void;
};

/** Functions that the cells of a row call. */
export type RowTools = {
  readonly refresh: () => void;
  readonly showSecret: (secret: Secret) => void;
  /** Acts at once; errors of the API are shown above the list. */
  readonly change: (act: () => Promise<unknown>) => void;
};

type Props<Row> = {
  readonly title: string;
  readonly queryKey: readonly unknown[];
  readonly load: (page: number) => Promise<ListPage<Row>>;
  readonly columns: (tools: RowTools) => readonly Column<Row>[];
  readonly empty: EmptyProps;
  /** The button that adds a row, its form, and the title of the secret. Absent for operators who may not add rows. */
  readonly add?: { readonly label: string; readonly Form: ComponentType<NewProps>; readonly made: string } | false;
};

/** A list whose rows people add and change: tokens, webhooks, keys, operators. */
export function ManagedList<Row extends { readonly id: string }>({
  title,
  queryKey,
  load,
  columns,
  empty,
  add,
}: Props<Row>) {
  const { page } = useFilters();
  const [creating, setCreating] = useState(false);
  const [shown, setShown] = useState<{ readonly secret: Secret }>();
  const refresh = useRefresh(...queryKey);
  const query = useQuery({
    queryKey: [...queryKey, "list", page],
    queryFn: () => load(page),
    placeholderData: keepPreviousData,
  });
  const changing = useAct(refresh);
  const tools: RowTools = { refresh, showSecret: (secret) => setShown({ secret }), change: changing.mutate };
  const onMade: NewProps["onMade"] = (made) => {
    setCreating(false);
    setShown(made);
    refresh();
  };
  return (
    <Stack>
      {changing.error && <Problem error={changing.error} />}
      <List
        query={query}
        actions={add && <Button onClick={() => setCreating(true)}>{add.label}</Button>}
        columns={columns(tools)}
        keyOf={({ id }) => id}
        label={title}
        empty={empty}
      />
      {add && creating && <add.Form onClose={() => setCreating(false)} onMade={onMade} />}
      {add && shown && <SecretOnce title={add.made} value={shown.secret} onClose={() => setShown(undefined)} />}
    </Stack>
  );
}
