import type { ProjectId, WebhookId, WebhookMessageId, WebhookMessageStatus } from "@herald/contracts";

/** One request. */
export type AttemptDocument = {
  readonly at: Date;
  readonly durationMs: number;
  readonly status?: number;
  readonly error?: string;
  readonly response?: string;
};

/** What one webhook gets of one event. */
export type WebhookMessageDocument = {
  /** Made of webhook and event, so that whoever stores it again stores the same. */
  readonly _id: WebhookMessageId;
  readonly projectId: ProjectId;
  readonly webhookId: WebhookId;
  readonly eventId: string;
  readonly type: string;
  /** When the event happened. */
  readonly at: Date;
  /** The body as it is posted and signed, to the byte. */
  readonly payload: string;
  readonly state: WebhookMessageStatus;
  /** When it is sent; while that is under way, when it is given up for lost. Only of what is waiting. */
  readonly dueAt?: Date;
  /** Who sends it just now. */
  readonly claim?: string;
  /** A test: it is tried once. */
  readonly once?: true;
  /** Attempts on the present schedule. */
  readonly round: number;
  readonly attemptCount: number;
  /** The last ones. */
  readonly attempts: readonly AttemptDocument[];
  /** What went wrong the last time. */
  readonly error?: string;
  /** When it is forgotten. */
  readonly expiresAt: Date;
};

/** What is known of a message before anything was done with it. */
export type NewMessage = Pick<
  WebhookMessageDocument,
  "_id" | "projectId" | "webhookId" | "eventId" | "type" | "at" | "payload" | "once"
>;
