import { headerNames } from "@herald/contracts";
import { describeIssues } from "@herald/kit";
import type { Connection } from "./connect.ts";
import { type Delivery, type Handler, streamOf } from "./define-handler.ts";
import { brokerHeaders } from "./message-headers.ts";
import type { Received } from "./received.ts";
import type { Verdict } from "./settle.ts";

/** A message in this process, from its receipt until the broker was told what became of it. */
export type Task = {
  /** The latest delivery of the message: a redelivery of one that is still in work replaces it. */
  received: Received;
  readonly receivedAt: number;
  readonly parsed: Parsed;
  settled: boolean;
  held: boolean;
};

export type Parsed =
  | { readonly ok: true; readonly data: unknown }
  /** Not JSON, or not what the contract says. */
  | { readonly ok: false; readonly detail: string };

/** What is handled together: one message, or a batch of those whose bodies are good. */
export type Job = {
  readonly connection: Connection;
  readonly handler: Handler;
  readonly tasks: readonly Task[];
  readonly place: Place;
};

/** A job's place among those that run at a time. It is given up while the job waits for something that is away. */
export type Place = {
  /** How often the job had to wait. */
  readonly holds: () => number;
  /** Waits outside the limit. False when the service stops, and nothing will be tried again. */
  wait(ms: number): Promise<boolean>;
  /** The same for one piece of work inside a handler. */
  readonly hold: Delivery<unknown>["hold"];
  readonly signal: AbortSignal;
};

/** One behaviour around the handling of a job. */
export type Step = (job: Job, next: () => Promise<Verdict>) => Promise<Verdict>;

export const parseBody = (handler: Handler, received: Received): Parsed => {
  let json: unknown;
  try {
    json = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(received.body));
  } catch {
    return { ok: false, detail: "the body is not JSON" };
  }
  const parsed = handler.schema.safeParse(json);
  return parsed.success
    ? { ok: true, data: parsed.data }
    : { ok: false, detail: describeIssues(parsed.error).join("; ") };
};

export const messageId = ({ headers, stream, sequence }: Received): string =>
  headers?.get(headerNames.ceId) || headers?.get(brokerHeaders.messageId) || `${stream}/${sequence}`;

/** The project of a message, for the log: an id, never content. */
export const projectOf = ({ parsed }: Task): string | undefined => {
  if (!parsed.ok || typeof parsed.data !== "object" || parsed.data === null) return undefined;
  return "projectId" in parsed.data && typeof parsed.data.projectId === "string" ? parsed.data.projectId : undefined;
};

export const deliveryOf = ({ received, parsed }: Task, place: Place): Delivery<unknown> => ({
  data: parsed.ok ? parsed.data : undefined,
  id: messageId(received),
  subject: received.subject,
  deliveryCount: received.deliveryCount,
  publishedAt: received.publishedAt,
  signal: place.signal,
  header: (name) => received.headers?.get(name) || undefined,
  hold: place.hold,
});

/** A dead letter that cannot be handled must not become another one, for ever. */
export const readsDeadLetters = (handler: Handler): boolean => streamOf(handler) === "PUSH_DLQ";
