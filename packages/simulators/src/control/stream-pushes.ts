import type { Request, Response } from "express";
import type { Push, PushLog } from "../push-log.ts";

/** What a page that was just opened shows of the past. */
const backlog = 50;
/** How often, and how many at most: a browser cannot draw a broadcast push by push. */
const intervalMs = 150;
const maxPerInterval = 50;
/** Proxies close a stream that says nothing for a minute. */
const heartbeatMs = 20_000;

const isCursor = (text: string | undefined): text is string => text !== undefined && /^\d+$/.test(text);

/**
 * Server-sent events, one per push, `id` its cursor; a client that comes back goes on after the last it saw. Of a flood
 * only the newest are sent: the page is for eyes, `GET /pushes` is complete.
 */
export function streamPushes(log: PushLog, request: Request, response: Response): void {
  response.set({ "Content-Type": "text/event-stream", "Cache-Control": "no-cache" });
  response.flushHeaders();
  const cursor = request.get("Last-Event-ID");
  let waiting: Push[] = [...log.pushes(isCursor(cursor) ? { since: Number(cursor) } : {})].slice(-backlog);

  const flush = () => {
    const text = waiting.map((push) => `id: ${push.seq}\ndata: ${JSON.stringify(push)}\n\n`).join("");
    waiting = [];
    if (text !== "") response.write(text);
  };
  flush();

  const end = log.subscribe((push) => {
    waiting.push(push);
    if (waiting.length > maxPerInterval) waiting.shift();
  });
  const sending = setInterval(flush, intervalMs);
  const beating = setInterval(() => response.write(": still here\n\n"), heartbeatMs);
  response.on("close", () => {
    end();
    clearInterval(sending);
    clearInterval(beating);
  });
}
