import { useQuery, useQueryClient } from "@tanstack/react-query";
import { createContext, type ReactNode, useContext, useEffect, useMemo, useState } from "react";
import { useProject } from "./clients.ts";
import { isSignedOut, isUnreachable } from "./problems.ts";
import { connection, probe } from "./session.ts";

/** Events that arrive within this time cause one refresh. */
const batchMs = 700;
const reopenMs = 4_000;

/** The queries that an event of `io.herald.<entity>` makes stale, by the second part of their key; the first is the project. */
const changedBy: Readonly<Record<string, readonly string[]>> = {
  notification: ["notifications", "stats", "deliveries", "trace"],
  delivery: ["notifications", "stats", "deliveries", "trace"],
  device: ["devices", "users", "topics"],
  topic: ["topics"],
  user: ["users", "devices"],
  provider: ["providers"],
  project: ["project"],
  webhook: ["webhooks"],
};

const LiveContext = createContext({ live: false, gone: false });

/** Whether the stream of events is open. Without it pages poll every few seconds. */
export const useLive = (): boolean => useContext(LiveContext).live;

/** Whether Herald is unreachable. The shell then shows a banner above every page. */
export const useGone = (): boolean => useContext(LiveContext).gone;

/** Poll interval for data that changes without the user, in milliseconds. */
export const usePollMs = (): number => (useLive() ? 15_000 : 4_000);

const probeKey = ["probe"] as const;

/** Polls whether Herald is unreachable. When Herald answers again, all queries are refetched. */
export const useProbe = (): boolean => {
  const queries = useQueryClient();
  const { error } = useQuery({
    queryKey: probeKey,
    queryFn: probe,
    refetchInterval: ({ state }) => (state.error === null ? 15_000 : 2_000),
  });
  const gone = isUnreachable(error);
  useEffect(() => {
    const ask = () => void queries.invalidateQueries({ queryKey: probeKey }, { cancelRefetch: false });
    connection.addEventListener("lost", ask);
    return () => connection.removeEventListener("lost", ask);
  }, [queries]);
  useEffect(() => {
    if (!gone) return;
    return () => void queries.invalidateQueries({ predicate: ({ queryKey }) => queryKey[0] !== probeKey[0] });
  }, [gone, queries]);
  return gone;
};

type Props = { readonly gone: boolean; readonly children: ReactNode };

/** Follows the project's events and refetches the queries that they make stale. */
export const LiveEvents = ({ gone, children }: Props) => {
  const { id, herald } = useProject();
  const queries = useQueryClient();
  const [live, setLive] = useState(false);
  useEffect(() => {
    const ending = new AbortController();
    const { signal } = ending;
    const changed = new Set<string>();
    let timer: ReturnType<typeof setTimeout> | undefined;
    const refresh = () => {
      timer = undefined;
      for (const name of changed) void queries.invalidateQueries({ queryKey: [id, name] });
      changed.clear();
    };
    const follow = async () => {
      while (!signal.aborted) {
        try {
          setLive(true);
          for await (const { type } of herald.events.follow({ signal })) {
            const [, , entity = ""] = type.split(".");
            for (const name of changedBy[entity] ?? []) changed.add(name);
            timer ??= setTimeout(refresh, batchMs);
          }
        } catch (error) {
          if (signal.aborted) return;
          setLive(false);
          if (isSignedOut(error)) connection.dispatchEvent(new Event("ended"));
        }
        await new Promise((resolve) => setTimeout(resolve, reopenMs));
      }
    };
    void follow();
    return () => {
      ending.abort();
      clearTimeout(timer);
    };
  }, [id, herald, queries]);
  const state = useMemo(() => ({ live: live && !gone, gone }), [live, gone]);
  return <LiveContext.Provider value={state}>{children}</LiveContext.Provider>;
};
