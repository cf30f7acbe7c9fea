import { EventMessage } from "@herald/contracts";
import { eventually } from "@herald/testing";
import { expect } from "vitest";

export type Seen = { readonly id: string; readonly event: EventMessage };

/** Reads server-sent events as a client does: collects fields line by line until a blank line, and separates comments. */
export const readEventStream = async (
  base: string,
  token: string,
  query = "",
  headers: Record<string, string> = {},
) => {
  const leaving = new AbortController();
  const response = await fetch(`${base}/api/v1/events${query}`, {
    headers: { authorization: `Bearer ${token}`, ...headers },
    signal: leaving.signal,
  });
  expect(response.status, response.ok ? "" : await response.clone().text()).toBe(200);
  const seen: Seen[] = [];
  const comments: string[] = [];
  let lastEventId = "";

  const take = (block: string) => {
    const data: string[] = [];
    for (const line of block.split("\n")) {
      const [, field = "", value = ""] = /^([^:]*)(?:: ?(.*))?$/.exec(line) ?? [];
      if (field === "") comments.push(value);
      if (field === "id") lastEventId = value;
      if (field === "data") data.push(value);
    }
    if (data.length > 0) seen.push({ id: lastEventId, event: EventMessage.parse(JSON.parse(data.join("\n"))) });
  };
  const read = async () => {
    let text = "";
    for await (const chunk of response.body?.pipeThrough(new TextDecoderStream()) ?? []) {
      const blocks = (text + chunk).split("\n\n");
      text = blocks.pop() ?? "";
      for (const block of blocks) take(block);
    }
  };
  let ended = false;
  const done = read()
    .catch(() => {})
    .finally(() => {
      ended = true;
    });

  // From here on the reader misses no event, and knows its position.
  await eventually(() => expect(comments).toContain("events follow"));

  return {
    response,
    seen,
    comments,
    lastEventId: () => lastEventId,
    ended: () => ended,
    /** The ids of the events, once `count` of them have arrived. */
    ids: (count: number): Promise<string[]> =>
      eventually(
        () => {
          const ids = seen.map(({ event }) => event.id);
          if (ids.length < count) throw new Error(`${ids.length} of ${count} events so far: ${ids.join(", ")}`);
          return ids;
        },
        { timeoutMs: 20_000 },
      ),
    leave: async (): Promise<void> => {
      leaving.abort();
      await done;
    },
    done,
  };
};

export type EventReader = Awaited<ReturnType<typeof readEventStream>>;
