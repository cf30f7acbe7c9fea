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
    if (!more) await Promise.race([once(response, "drain"), once(response, "close")]);
  };
  for (const push of pushes) {
    batch.push(JSON.stringify(push));
    if (batch.length >= piece) await flush();
    if (response.destroyed) return;
  }
  await flush();
  response.end(`],${JSON.stringify(tail).slice(1)}`);
}
