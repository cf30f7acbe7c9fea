import { useQueryClient } from "@tanstack/react-query";
import { createContext, type ReactNode, useContext, useEffect, useState } from "react";
import { sessionEnded } from "../session-context.tsx";
import { useProject } from "./clients.ts";
import { isSignedOut } from "./problems.ts";

/** Events of one moment lead to one refresh. */
const gatherMs = 700;
const reopenMs = 4_000;

/** What an event changes: the first words of query keys, which begin with the project. */
const changedBy = (type: string): readonly string[] => {
  const [, , entity] = type.split(".");
  if (entity === "notification" || entity === "delivery") return ["notifications", "stats", "deliveries", "trace"];
  if (entity === "device") return ["devices", "users", "topics"];
  if (entity === "topic") return ["topics"];
  if (entity === "user") return ["users", "devices"];
  if (entity === "provider") return ["providers"];
  if (entity === "webhook") return ["webhooks"];
  return [];
};

const LiveContext = createContext(false);

/** Whether events arrive. Where they do not, pages ask again every few seconds. */
export const useLive = (): boolean => useContext(LiveContext);

/** How often a page asks for what changes while nobody touches it, in milliseconds. */
export const usePollMs = (): number => (useLive() ? 15_000 : 4_000);

/** Follows the project's events, and refreshes what they change. */
export const LiveEvents = ({ children }: { readonly children: ReactNode }) => {
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
            for (const name of changedBy(type.replace(/^io\.herald\./, "x.y."))) changed.add(name);
            timer ??= setTimeout(refresh, gatherMs);
          }
        } catch (error) {
          if (signal.aborted) return;
          setLive(false);
          if (isSignedOut(error)) sessionEnded.dispatchEvent(new Event("end"));
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
  return <LiveContext.Provider value={live}>{children}</LiveContext.Provider>;
};
