import type {
  NewWebhook,
  Recovered,
  Webhook,
  WebhookChange,
  WebhookMessage,
  WebhookMessageDetail,
  WebhookMessageStatus,
} from "./api-types.ts";
import { type CallOptions, type Http, type PostOptions, path } from "./http.ts";
import { type ListOptions, list, type TimeListOptions } from "./list.ts";
import { type ReceivedHeaders, verifyWebhook } from "./signatures.ts";

/** A webhook and its secret, `whsec_…`, shown only once. No secret if the first answer was lost and this one is a replay. */
export type WebhookWithSecret = { readonly webhook: Webhook; readonly secret?: string | undefined };

export const createWebhooks = (http: Http, ownSecret?: string) => ({
  /** Verifies a received message, and returns its event. Throws `signature-invalid`. */
  verify: (headers: ReceivedHeaders, body: string | Uint8Array, secret = ownSecret) => {
    if (secret === undefined) throw new TypeError("secret: give it here, or as `webhookSecret` to the client");
    return verifyWebhook(headers, body, secret);
  },
  create: (webhook: NewWebhook, options?: PostOptions) =>
    http.create<WebhookWithSecret>("webhook", "/webhooks", options, { webhook }),
  get: (id: string, options?: CallOptions) => http.get<Webhook>(path`/webhooks/${id}`, options),
  list: (options?: TimeListOptions) => list<Webhook>(http, "/webhooks", options),
  update: (id: string, change: WebhookChange, options?: CallOptions) =>
    http.patch<Webhook>(path`/webhooks/${id}`, options, { webhook: change }),
  delete: (id: string, options?: CallOptions) => http.remove(path`/webhooks/${id}`, options),
  /** Creates a new secret. For a day Herald also signs messages with the old secret. */
  rotateSecret: (id: string, options?: PostOptions) =>
    http.create<WebhookWithSecret>("webhook", path`/webhooks/${id}/secret`, options),
  /** The messages of a webhook: one for each event. */
  messages: (id: string, options?: ListOptions & { readonly status?: WebhookMessageStatus | undefined }) =>
    list<WebhookMessage>(http, path`/webhooks/${id}/messages`, options),
  /** The message with its payload and its attempts. */
  message: (id: string, messageId: string, options?: CallOptions) =>
    http.get<WebhookMessageDetail>(path`/webhooks/${id}/messages/${messageId}`, options),
  resend: (id: string, messageId: string, options?: PostOptions) =>
    http.post<WebhookMessage>(path`/webhooks/${id}/messages/${messageId}/resend`, options),
  /** Sends a test message, once. */
  ping: (id: string, options?: PostOptions) => http.post<WebhookMessage>(path`/webhooks/${id}/ping`, options),
  /** Resends up to 10,000 messages that failed since a time. If `more` is true, repeat the call for the next messages. */
  recover: (id: string, since: Date | string, options?: PostOptions) =>
    http.post<Recovered>(path`/webhooks/${id}/recover`, options, { since: new Date(since).toISOString() }),
});
