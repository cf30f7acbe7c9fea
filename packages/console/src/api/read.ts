import { keepPreviousData, type QueryKey, useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { usePollMs } from "./live.tsx";

type Signal = { readonly signal: AbortSignal };

/** Reads a value and polls it; by default as often as {@link usePollMs} says. */
export const useRead = <Value>(
  queryKey: QueryKey,
  read: (options: Signal) => Promise<Value>,
  { everyMs, keep = false }: { readonly everyMs?: number; readonly keep?: boolean } = {},
) => {
  const pollMs = usePollMs();
  return useQuery({
    queryKey,
    queryFn: ({ signal }) => read({ signal }),
    placeholderData: keep ? keepPreviousData : undefined,
    refetchInterval: everyMs ?? pollMs,
  });
};

/** Reads rows. Those of the previous page or filter stay until the next rows have arrived. */
export const useRows = <Value>(queryKey: QueryKey, read: (options: Signal) => Promise<Value>, everyMs?: number) =>
  useRead(queryKey, read, { keep: true, ...(everyMs && { everyMs }) });

/** The first rows of a list that has cursors but no page numbers. `more`: the list continues. */
export const firstRows = async <Row>(
  list: AsyncIterable<Row>,
  limit: number,
): Promise<{ readonly data: readonly Row[]; readonly more: boolean }> => {
  const data: Row[] = [];
  for await (const row of list) {
    if (data.length === limit) return { data, more: true };
    data.push(row);
  }
  return { data, more: false };
};

/** {@link firstRows} of a list; `onMore` reads as many rows again. */
export const useFirstRows = <Row>(
  queryKey: QueryKey,
  list: (options: Signal & { readonly perPage: number }) => AsyncIterable<Row>,
  rowsAtATime: number,
  everyMs?: number,
) => {
  const [limit, setLimit] = useState(rowsAtATime);
  const perPage = Math.min(rowsAtATime + 1, 100);
  const query = useRows([...queryKey, limit], ({ signal }) => firstRows(list({ signal, perPage }), limit), everyMs);
  return { query, onMore: query.data?.more ? () => setLimit(limit + rowsAtATime) : undefined };
};

/** Acts at once: `act.mutate(() => herald.…)`. The page shows its error. */
export const useAct = (onSuccess: () => void) =>
  useMutation({ mutationFn: (act: () => Promise<unknown>) => act(), onSuccess });

/** Refetches the queries whose keys begin with these values. */
export const useRefresh = (...queryKey: QueryKey): (() => void) => {
  const queries = useQueryClient();
  return () => void queries.invalidateQueries({ queryKey });
};
