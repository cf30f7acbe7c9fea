export type WebhookResponse =
  /** `body`: its beginning. */
  | {
      readonly kind: "answered";
      readonly status: number;
      readonly body: string;
      readonly retryAfter?: string | undefined;
    }
  | { readonly kind: "unanswered"; readonly problem: string };

export type WebhookOutcome =
  | { readonly kind: "delivered" }
  /** The webhook wants no more messages. */
  | { readonly kind: "gone"; readonly error: string }
  | { readonly kind: "failed"; readonly error: string };

/** As Standard Webhooks suggests: only 2xx is success, and 410 disables the webhook. */
export const outcomeOf = (response: WebhookResponse): WebhookOutcome => {
  if (response.kind === "unanswered") return { kind: "failed", error: response.problem };
  const { status } = response;
  if (status >= 200 && status < 300) return { kind: "delivered" };
  if (status === 410) return { kind: "gone", error: "it answered 410: it wants no messages any more" };
  if (status >= 300 && status < 400)
    return { kind: "failed", error: `it answered ${status}: redirects are not followed, change the webhook's url` };
  return { kind: "failed", error: `it answered ${status}; a status from 200 to 299 is accepted` };
};
