import { type DeliveryReason, erasedUser, type NotificationContent } from "@herald/contracts";
import { createRenderPersonal } from "@herald/payload";
import type { Outcome } from "../domain/outcome.ts";
import type { Sendable } from "../domain/settle-row.ts";
import type { NotificationRecord } from "../stores/notification-document.ts";

/** The content for one device, or why it gets no push. */
export type PersonalContent = (
  device: Sendable,
) => { readonly content: NotificationContent } | { readonly failure: Outcome };

const failed = (reason: DeliveryReason, providerReason: string) => ({
  failure: { kind: "rejected", reason, providerReason, notSent: true } as const,
});

/** Renders a notification for each of its devices. */
export const createPersonalContent = (
  content: NotificationContent,
  personal: NonNullable<NotificationRecord["personal"]>,
): PersonalContent => {
  const render = createRenderPersonal(content, personal);
  const needsValues = content.recipients !== undefined || personal.devicePaths !== undefined;
  return ({ values, userId, locale }) => {
    const isLost = needsValues && (values === undefined || (personal.devicePaths && values.device === undefined));
    if (isLost) return failed("values-lost", "");
    const user = userId === undefined || userId === erasedUser ? {} : { user: { id: userId } };
    const rendered = render({ ...values, ...user }, locale);
    return "content" in rendered ? rendered : failed(rendered.reason, rendered.detail);
  };
};
