/** What came of one request. */
export type PostResult =
  | {
      readonly kind: "answered";
      readonly status: number;
      /** The beginning of the body. */
      readonly body: string;
      readonly retryAfter?: string | undefined;
    }
  /** No answer: why, in words. */
  | { readonly kind: "unanswered"; readonly problem: string };

export type WebhookVerdict =
  | { readonly kind: "delivered" }
  /** Its owner does not want messages any more. */
  | { readonly kind: "gone"; readonly error: string }
  | { readonly kind: "failed"; readonly error: string };

/** As Standard Webhooks suggests: 2xx alone is success, and 410 says never again. */
export const judgePost = (result: PostResult): WebhookVerdict => {
  if (result.kind === "unanswered") return { kind: "failed", error: result.problem };
  const { status } = result;
  if (status >= 200 && status < 300) return { kind: "delivered" };
  if (status === 410) return { kind: "gone", error: "it answered 410: it wants no messages any more" };
  if (status >= 300 && status < 400)
    return { kind: "failed", error: `it answered ${status}: redirects are not followed, change the webhook's url` };
  return { kind: "failed", error: `it answered ${status}; a status from 200 to 299 is accepted` };
};
