import { keepPreviousData, type QueryKey, useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { usePollMs } from "./live.tsx";

type Signal = { readonly signal: AbortSignal };

/** Reads a value and polls it; by default as often as {@link usePollMs} says. `everyMs: false`: only after a temporary error. */
export const useRead = <Value>(
  queryKey: QueryKey,
  read: (options: Signal) => Promise<Value>,
  { everyMs, keep = false }: { readonly everyMs?: number | false | undefined; readonly keep?: boolean } = {},
) => {
  const pollMs = usePollMs();
  return useQuery({
    queryKey,
    queryFn: ({ signal }) => read({ signal }),
    placeholderData: keep ? keepPreviousData : undefined,
    ...(everyMs !== false && { refetchInterval: everyMs ?? pollMs }),
  });
};

/** The first rows of a list that has cursors but no page numbers. `more`: the list continues. */
export const firstRows = async <Row>(
  list: AsyncIterable<Row> | Iterable<Row>,
  limit: number,
): Promise<{ readonly data: readonly Row[]; readonly more: boolean }> => {
  const data: Row[] = [];
  for await (const row of list) {
    if (data.length === limit) return { data, more: true };
    data.push(row);
  }
  return { data, more: false };
};

/** Dry runs have a quota, so that no act repeats them: a draft asks for its own. */
const isDryRun = ({ queryKey }: { readonly queryKey: QueryKey }) => queryKey[1] === "dry-run";

/** Acts, and then refetches what the page shows: what was changed may be anywhere on it. */
export const useAct = <Result, Argument = void>(
  act: (argument: Argument) => Promise<Result>,
  onDone?: (result: Result) => void,
) => {
  const queries = useQueryClient();
  return useMutation<Result, Error, Argument>({
    mutationFn: act,
    onSuccess: (result) => {
      void queries.invalidateQueries({ predicate: (query) => !isDryRun(query) });
      onDone?.(result);
    },
  });
};

/** {@link useAct} for several buttons: `acts.mutate(() => herald.…)`. */
export const useActs = () => useAct((act: () => Promise<unknown>) => act());
