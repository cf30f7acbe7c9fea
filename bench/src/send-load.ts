import { randomUUID } from "node:crypto";
import { httpRequest } from "./http-request.ts";
import { runLoad } from "./load.ts";
import type { SendLoad } from "./sends.ts";

/** Sends notifications over plain sockets. A process of its own: `send-load.ts <SendLoad as JSON>`. Prints an `Answered`. */

/** As many as the peer's load uses. */
const connections = { single: 50, batch: 20 } as const;

const { gateway, token, count, pace, targets, keys, batchOf, recipients, activities, template, kind }: SendLoad =
  JSON.parse(process.argv[2] ?? "");
const to = new URL(gateway);
const texts = (n: number | string) => ({ title: "Hello", body: `World ${n}`, link_to: "/hello", ttl: 3_600 });
const targetAt = (index: number) => targets[index % targets.length];
const notificationAt = (index: number) => ({
  ...(template === undefined ? texts(index) : { template, variables: { n: index } }),
  targets: [targetAt(index)],
  ...(kind !== undefined && { kind }),
});
const headersOf = () => ({ Authorization: `Bearer ${token}`, ...(keys ? { "Idempotency-Key": randomUUID() } : {}) });
const requestOf = (path: string, body: unknown): string =>
  httpRequest({ method: "POST", to, path: `/api/v1/notifications${path}`, headers: headersOf(), body });
const stateOf = (index: number): string => {
  const body = { activity: { content_state: { n: index } } };
  return httpRequest({
    method: "PATCH",
    to,
    path: `/api/v1/activities/${targetAt(index)}`,
    headers: headersOf(),
    body,
  });
};
const single = (_: unknown, index: number) =>
  activities ? stateOf(index) : requestOf("", { notification: notificationAt(index) });
const batchFrom = (size: number) => (_: unknown, index: number) => {
  const notifications = Array.from({ length: size }, (__, at) => notificationAt(index * size + at));
  return requestOf("/batch", { notifications });
};
const recipientsFrom = (size: number) => (_: unknown, index: number) => {
  const given = Array.from({ length: size }, (__, at) => index * size + at);
  const listed = given.map((n) => ({ target: targetAt(n), variables: { n } }));
  return requestOf("", { notification: { ...texts("{{ n }}"), recipients: listed } });
};
// Built before the measurement starts.
const requests =
  batchOf === undefined
    ? Array.from({ length: count }, single)
    : Array.from({ length: count / batchOf }, recipients ? recipientsFrom(batchOf) : batchFrom(batchOf));

await runLoad({ to, requests, connections: batchOf === undefined ? connections.single : connections.batch, pace });
