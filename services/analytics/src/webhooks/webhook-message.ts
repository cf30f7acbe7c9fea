import { type EventMessage, type ProjectId, userKey, type WebhookId, webhookMessageId } from "@herald/contracts";

export type ReceivedEvent = {
  readonly projectId: ProjectId;
  /** `ce-id`. */
  readonly id: string;
  /** Such as `io.herald.notification.opened.v1`. */
  readonly type: string;
  /** When it happened. */
  readonly at: Date;
  /** When the stream stored it. */
  readonly publishedAt: Date;
  readonly data: Readonly<Record<string, unknown>>;
};

type Subscriber = {
  readonly _id: WebhookId;
  readonly projectId: ProjectId;
  readonly events: readonly string[] | null;
  readonly createdAt: Date;
};

/** How much the clocks of broker and service may differ. A webhook may get an event from just before its creation, but misses none. */
const clockSkewMs = 60_000;

/** Whether an event has the webhook's project and types, and was published after the webhook was created. */
export const isSubscribed = ({ projectId, events, createdAt }: Subscriber, event: ReceivedEvent): boolean =>
  projectId === event.projectId &&
  (events === null || events.includes(event.type)) &&
  event.publishedAt.getTime() >= createdAt.getTime() - clockSkewMs;

/** The same message, however often the event is delivered. */
export const newWebhookMessage = (
  { _id: webhookId, projectId }: Pick<Subscriber, "_id" | "projectId">,
  { id: eventId, type, at, data }: ReceivedEvent,
) => ({
  _id: webhookMessageId(webhookId, eventId, at),
  projectId,
  webhookId,
  eventId,
  type,
  at,
  /** The request body: type, timestamp and data as in Standard Webhooks, and the event id. */
  payload: JSON.stringify({ id: eventId, type, timestamp: at.toISOString(), data } satisfies EventMessage),
});

/** Replaces each string that is the user's id by null; returns the same text when there is none. */
export const erasePayload = (payload: string, projectId: ProjectId, key: string): string => {
  let found = false;
  const erased: unknown = JSON.parse(payload, (_, value: unknown) => {
    if (typeof value !== "string" || value.length > 128 || userKey(projectId, value) !== key) return value;
    found = true;
    return null;
  });
  return found ? JSON.stringify(erased) : payload;
};
