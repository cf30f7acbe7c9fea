import { type DeliveryReason, erasedUser, type NotificationContent } from "@herald/contracts";
import type { RenderPersonal } from "@herald/payload";
import type { Outcome } from "../domain/outcome.ts";
import type { Sendable } from "../domain/settle-row.ts";

/** The content for one device, or why it gets no push. */
export const personalContent = (
  render: RenderPersonal,
  { values, userId, locale }: Sendable,
): { readonly content: NotificationContent } | { readonly failure: Outcome } => {
  const failed = (reason: DeliveryReason, providerReason: string) => ({
    failure: { kind: "rejected", reason, providerReason, notSent: true } as const,
  });
  if (values === undefined) return failed("values-lost", "");
  const user = userId === undefined || userId === erasedUser ? {} : { user: { id: userId } };
  const rendered = render({ ...values, ...user }, locale);
  return "content" in rendered ? rendered : failed(rendered.reason, rendered.detail);
};
