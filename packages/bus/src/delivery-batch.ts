import { type ErrorCode, ProjectId } from "@herald/contracts";
import type { Connection } from "./connect.ts";
import { type Delivery, type Handler, type Parsed, streamOf } from "./define-handler.ts";
import type { Received } from "./received-message.ts";

/** A message in this process, from its receipt until the broker was told what became of it. */
export type Task = {
  /** The latest delivery of the message: a redelivery of one that is still in work replaces it. */
  received: Received;
  readonly receivedAt: number;
  /** When the broker last heard of it from here, or gave it (`performance.now()`): its ack wait runs from then. */
  heardAt: number;
  readonly parsed: Parsed;
  settled: boolean;
  held: boolean;
};

/** What is handled together: one message, or a batch of those whose bodies are good. */
export type DeliveryBatch = {
  readonly connection: Connection;
  readonly handler: Handler;
  readonly tasks: readonly Task[];
  readonly place: Permit;
};

/** A job's place among those that run at a time. It is given up while the job waits for something that is unavailable. */
export type Permit = {
  /** How often the job had to wait. */
  readonly holds: () => number;
  /** Waits outside the limit. False when the service stops, and nothing will be tried again. */
  wait(ms: number): Promise<boolean>;
  /** The same for one piece of work inside a handler. */
  readonly hold: Delivery<unknown>["hold"];
  readonly signal: AbortSignal;
};

/** What becomes of a message that was tried. */
export type Settlement =
  /** Handled: ack. */
  | { readonly kind: "acked" }
  /** It can never succeed: dead letter, then term(reason). */
  | {
      readonly kind: "dead_lettered";
      readonly reason: ErrorCode | "exhausted";
      readonly detail: string;
      readonly error?: unknown;
    }
  /** Tried again later: nak with a delay. */
  | { readonly kind: "retried"; readonly delayMs: number; readonly error?: unknown }
  /** A batch failed: each of its messages is tried alone. */
  | { readonly kind: "split" };

/** One behaviour around the handling of a job. */
export type Step = (job: DeliveryBatch, next: () => Promise<Settlement>) => Promise<Settlement>;

/** The project of a message, for the log: an id, never what a stranger wrote in its place. */
export const projectOf = ({ parsed }: Pick<Task, "parsed">): string | undefined => {
  if (!parsed.ok || typeof parsed.data !== "object" || parsed.data === null) return undefined;
  const { projectId, project_id = projectId } = parsed.data as { projectId?: unknown; project_id?: unknown };
  return ProjectId.safeParse(project_id).data;
};

export const deliveryOf = (handler: Handler, { received, parsed }: Task, place: Permit): Delivery<unknown> => ({
  data: parsed.ok ? parsed.data : undefined,
  // Asked for by few, and the first to read the headers pays for parsing all of them.
  get id() {
    return handler.idOf(received);
  },
  subject: received.subject,
  deliveryCount: received.deliveryCount,
  publishedAt: received.publishedAt,
  sequence: received.sequence,
  signal: place.signal,
  header: (name) => received.headers?.get(name) || undefined,
  hold: place.hold,
});

/** A dead letter that cannot be handled must not become another one, for ever. */
export const readsDeadLetters = (handler: Handler): boolean => streamOf(handler) === "PUSH_DLQ";
