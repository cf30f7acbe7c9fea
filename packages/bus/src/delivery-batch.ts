import { type ErrorCode, ProjectId } from "@herald/contracts";
import type { Connection } from "./connect.ts";
import { type Delivery, type Handler, type Parsed, streamOf } from "./define-handler.ts";
import type { Received } from "./received-message.ts";

/** A message in this process, from its receipt to its settlement. */
export type Task = {
  /** The latest delivery: a redelivery replaces it while the message is still being handled. */
  received: Received;
  readonly receivedAt: number;
  /** When the ack wait last began (`performance.now()`): at the delivery or at the last progress signal. */
  heardAt: number;
  readonly parsed: Parsed;
  settled: boolean;
  held: boolean;
};

/** Messages that one handler call handles: one, or several valid ones. */
export type DeliveryBatch = {
  readonly connection: Connection;
  readonly handler: Handler;
  readonly tasks: readonly Task[];
  readonly permit: Permit;
};

/** Permission for a batch to run, limited by the concurrency. The batch releases it while it waits for an unavailable dependency. */
export type Permit = {
  /** How often the batch had to wait. */
  readonly holds: () => number;
  /** Waits without using the limit. Resolves to false when the service stops and no retry follows. */
  wait(ms: number): Promise<boolean>;
  /** The same for one step inside a handler. */
  readonly hold: Delivery<unknown>["hold"];
  readonly signal: AbortSignal;
};

/** The result of handling a message. */
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
  /** Retried later: nak with a delay. */
  | { readonly kind: "retried"; readonly delayMs: number; readonly error?: unknown }
  /** The batch failed: each of its messages is handled alone. */
  | { readonly kind: "split" };

/** One middleware around the handling of a batch. */
export type Step = (batch: DeliveryBatch, next: () => Promise<Settlement>) => Promise<Settlement>;

/** The project id of a message, for the log. Undefined when the field is not a valid id. */
export const projectOf = ({ parsed }: Pick<Task, "parsed">): string | undefined => {
  if (!parsed.ok || typeof parsed.data !== "object" || parsed.data === null) return undefined;
  const { projectId, project_id = projectId } = parsed.data as { projectId?: unknown; project_id?: unknown };
  return ProjectId.safeParse(project_id).data;
};

export const deliveryOf = (handler: Handler, { received, parsed }: Task, permit: Permit): Delivery<unknown> => ({
  data: parsed.ok ? parsed.data : undefined,
  // Few handlers need it, and reading one header parses all of them.
  get id() {
    return handler.idOf(received);
  },
  subject: received.subject,
  deliveryCount: received.deliveryCount,
  publishedAt: received.publishedAt,
  sequence: received.sequence,
  signal: permit.signal,
  header: (name) => received.headers?.get(name) || undefined,
  hold: permit.hold,
});

/** A dead letter that fails must not become another dead letter, endlessly. */
export const readsDeadLetters = (handler: Handler): boolean => streamOf(handler) === "PUSH_DLQ";
