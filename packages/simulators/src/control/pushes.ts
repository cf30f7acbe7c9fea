import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import type { Request, Response } from "express";
import type { PushLog } from "../push-log.ts";
import type { Push } from "../types.ts";

/** How many past pushes a newly opened page shows. */
const backlog = 50;
/** Limits the rate of events, because a browser cannot draw each push of a broadcast. */
const intervalMs = 150;
const maxPerInterval = 50;
/** Proxies close a stream that is idle for a minute. */
const heartbeatMs = 20_000;

const isCursor = (text: string | undefined): text is string => text !== undefined && /^\d+$/.test(text);

/**
 * Sends one server-sent event per push, with its cursor as `id`. A client that reconnects continues after its last event. When too many
 * arrive, sends only the newest: the page is for people, and `GET /pushes` is complete.
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

/** Pushes in each part of a long list: a single string of 200,000 pushes would exceed V8's limit. */
const piece = 500;

function* jsonOf(pushes: Iterable<Push>, tail: object): Generator<string> {
  let batch = ['{"data":['];
  let separator = "";
  for (const push of pushes) {
    batch.push(separator, JSON.stringify(push));
    separator = ",";
    if (batch.length < 2 * piece) continue;
    yield batch.join("");
    batch = [];
  }
  yield `${batch.join("")}],${JSON.stringify(tail).slice(1)}\n`;
}

/** Writes `{ data: [push], …tail }` as fast as the client reads. A client may disconnect. */
export async function writePushes(response: Response, pushes: Iterable<Push>, tail: object) {
  await pipeline(Readable.from(jsonOf(pushes, tail)), response.type("json")).catch(() => {});
}
