import type { ServerResponse } from "node:http";
import { expect, test } from "vitest";
import { answer, problem, startScriptedServer } from "../test/scripted-server.ts";
import { Herald } from "./herald.ts";

const token = "hpt_test";
const stream = (response: ServerResponse, ...chunks: string[]) => {
  response.writeHead(200, { "content-type": "text/event-stream" });
  for (const chunk of chunks) response.write(chunk);
};
const block = (position: number, id: string) =>
  `id: ${position}\ndata: ${JSON.stringify({ id, type: "io.herald.topic.created.v1" })}\n\n`;

test("a stream that breaks off is opened again behind the last position, seen or not", async () => {
  const server = await startScriptedServer([
    (response) => {
      const [first, second] = [block(4, "a").slice(0, 9), block(4, "a").slice(9)];
      stream(response, "retry: 1000\nid: 3\n: events follow\n\n", first, second);
      response.end("id: 9\n: heartbeat\n\nid: 12\ndata: {");
    },
    problem(503, "bus-unavailable", { "retry-after": "0" }),
    (response) => stream(response, block(10, "b")),
  ]);
  const seen: string[] = [];
  const since = "2030-01-31T09:00:00.000Z";
  for await (const { id, position } of new Herald({ url: server.url, token }).events.follow({ since })) {
    seen.push(`${position} ${id}`);
    if (seen.length === 2) break;
  }
  expect(seen).toEqual(["4 a", "10 b"]);
  expect(server.taken.map(({ url, headers }) => [url, headers["last-event-id"]])).toEqual([
    [`/api/v1/events?since=${encodeURIComponent(since)}`, undefined],
    ["/api/v1/events", "9"],
    ["/api/v1/events", "9"],
  ]);
});

test("a stream that was open once outlasts a gateway that is unavailable for longer than a call is retried", async () => {
  const server = await startScriptedServer([
    (response) => {
      stream(response, "id: 3\n: events follow\n\n");
      response.end();
    },
    ...Array.from({ length: 5 }, () => problem(503, "bus-unavailable", { "retry-after": "0" })),
    (response) => stream(response, block(4, "a")),
  ]);
  const follow = new Herald({ url: server.url, token, maxRetries: 1 }).events.follow();
  expect((await follow.next()).value).toMatchObject({ id: "a", position: "4" });
  await follow.return();
  expect(server.taken).toHaveLength(7);
});

test("a stream that cannot be opened at first says so", async () => {
  const follow = new Herald({ url: "http://127.0.0.1:9", token, maxRetries: 0 }).events.follow();
  await expect(follow.next()).rejects.toMatchObject({ slug: "unreachable" });
});

test("a position that is gone is the reader's to decide about", async () => {
  const server = await startScriptedServer([problem(410, "position-gone")]);
  const follow = new Herald({ url: server.url, token }).events.follow({
    lastEventId: "17",
    types: ["io.herald.topic.created.v1"],
  });
  await expect(follow.next()).rejects.toMatchObject({ slug: "position-gone", status: 410 });
  expect(server.taken[0]).toMatchObject({
    url: "/api/v1/events?types=io.herald.topic.created.v1",
    headers: { "last-event-id": "17" },
  });
});

test("an aborted signal ends a reader that waits", async () => {
  const leaving = new AbortController();
  const server = await startScriptedServer([
    (response) => {
      stream(response, "id: 3\n: events follow\n\n");
      setImmediate(() => leaving.abort(new Error("enough")));
    },
  ]);
  const follow = new Herald({ url: server.url, token }).events.follow({ signal: leaving.signal });
  await expect(follow.next()).rejects.toThrow("enough");
});

const isStream = (url: string) => url.startsWith("/api/v1/events");

test("many that wait for completion share one stream, and an event ends the wait of its own", async () => {
  const final = new Set<string>();
  let events: ServerResponse | undefined;
  const server = await startScriptedServer([
    (response, request) => {
      const { url } = request;
      if (isStream(url)) {
        events = response;
        stream(response, "id: 1\n: events follow\n\n");
        return;
      }
      const id = url.split("/").at(-1) ?? "";
      answer(200, { data: { id, ...(final.has(id) ? { completed_at: "now" } : {}) } })(response, request);
    },
  ]);
  const { completed } = new Herald({ url: server.url, token }).notifications;
  const looks: string[] = [];
  const all = ["one", "two"].map((id) => completed(id, { onChange: () => looks.push(id) }));
  await expect.poll(() => looks.length).toBeGreaterThan(4);
  for (const id of ["one", "two"]) {
    final.add(id);
    events?.write(
      `id: 2\ndata: ${JSON.stringify({ type: "io.herald.notification.completed.v1", data: { notification_id: id } })}\n\n`,
    );
  }
  expect((await Promise.all(all)).map(({ id }) => id)).toEqual(["one", "two"]);
  expect(server.taken.filter(({ url }) => isStream(url))).toHaveLength(1);
});

test("where no stream is to be had, looking now and then finds the end", async () => {
  let looks = 0;
  const server = await startScriptedServer([
    (response, request) => {
      if (isStream(request.url)) return problem(429, "rate-limited", { "retry-after": "0" })(response, request);
      const end = ++looks > 2 ? { completed_at: "now" } : {};
      answer(200, { data: { id: "one", ...end } })(response, request);
    },
  ]);
  expect(await new Herald({ url: server.url, token }).notifications.completed("one")).toMatchObject({ id: "one" });
});
