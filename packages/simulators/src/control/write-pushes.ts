import { once } from "node:events";
import type { Response } from "express";
import type { Push } from "../push-log.ts";

/** Long lists are written in pieces: one string of 200,000 pushes would exceed what V8 can hold. */
const piece = 500;

/** `{ data: [push], …tail }`, written as fast as the client reads. */
export async function writePushes(response: Response, pushes: Iterable<Push>, tail: object) {
  response.type("json").write('{"data":[');
  let separator = "";
  let batch: string[] = [];
  const flush = async () => {
    if (batch.length === 0) return;
    const more = response.write(separator + batch.join(","));
    separator = ",";
    batch = [];
    if (!more) await drained(response);
  };
  for (const push of pushes) {
    batch.push(JSON.stringify(push));
    if (batch.length >= piece) await flush();
    if (response.destroyed) return;
  }
  await flush();
  response.end(`],${JSON.stringify(tail).slice(1)}`);
}

/** Resolves when the client has read on, or has gone; leaves no listener behind, for a long list waits many times. */
async function drained(response: Response) {
  const done = new AbortController();
  const event = (name: string) => once(response, name, { signal: done.signal });
  await Promise.race([event("drain"), event("close")]).finally(() => done.abort());
}
