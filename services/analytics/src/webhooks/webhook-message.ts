import { type EventMessage, type ProjectId, type WebhookId, webhookMessageId } from "@herald/contracts";

/** An event as it came from the bus. */
export type HeardEvent = {
  readonly projectId: ProjectId;
  /** `ce-id`. */
  readonly id: string;
  /** Such as `io.herald.notification.opened.v1`. */
  readonly type: string;
  /** When it happened. */
  readonly at: Date;
  /** When the bus had it. */
  readonly publishedAt: Date;
  readonly data: Readonly<Record<string, unknown>>;
};

type Listener = {
  readonly _id: WebhookId;
  readonly projectId: ProjectId;
  readonly events: readonly string[] | null;
  readonly createdAt: Date;
};

/** The clocks of broker and service may differ by so much: an event is rather sent than lost in between. */
const clockSkewMs = 60_000;

/** Whether a webhook is to hear of an event: one of its project and its types, from after it was made. */
export const hears = ({ projectId, events, createdAt }: Listener, event: HeardEvent): boolean =>
  projectId === event.projectId &&
  (events === null || events.includes(event.type)) &&
  event.publishedAt.getTime() >= createdAt.getTime() - clockSkewMs;

/** The body that is posted: Standard Webhooks' type, timestamp and data, and the event's id beside them. */
export const webhookPayload = ({ id, type, at, data }: Pick<HeardEvent, "id" | "type" | "at" | "data">): string =>
  JSON.stringify({ id, type, timestamp: at.toISOString(), data } satisfies EventMessage);

/** What a webhook gets of an event: the same message however often the event comes. */
export const messageFor = (webhook: Pick<Listener, "_id" | "projectId">, event: HeardEvent) => ({
  _id: webhookMessageId(webhook._id, event.id, event.at),
  projectId: webhook.projectId,
  webhookId: webhook._id,
  eventId: event.id,
  type: event.type,
  at: event.at,
  payload: webhookPayload(event),
});
