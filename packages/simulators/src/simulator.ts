export const providers = ["apns", "fcm", "webpush"] as const;
export type Provider = (typeof providers)[number];

/** A server that plays one provider. */
export interface Simulator {
  readonly name: Provider;
  /** Origin without a trailing slash, `https://127.0.0.1:49152`. */
  readonly url: string;
  /** Accepted since the start, and open now. */
  connectionCount(): { readonly accepted: number; readonly open: number };
  /** Drops every connection and frees the port. */
  stop(): Promise<void>;
}
