import type { Push } from "./types.ts";

/** What a person did with a notification on iOS. */
export type Response = {
  readonly push: Push;
  readonly did: "opened" | "dismissed";
  readonly button?: string;
  /** What the app shows now. */
  readonly link?: string;
};

type NotificationResponse = {
  readonly actionIdentifier: string;
  readonly notification: {
    readonly request: { readonly trigger: unknown; readonly content: { readonly data?: unknown } };
  };
};

type Button = { readonly id?: unknown; readonly link_to?: unknown; readonly opens?: unknown };

const objectOf = (value: unknown): Push | undefined =>
  typeof value === "object" && value !== null ? (value as Push) : undefined;

/** The whole `userInfo`, which the trigger of a remote notification has. Undefined for a notification of another sender. */
export const responseOf = (response: NotificationResponse | null): Response | undefined => {
  if (!response) return undefined;
  const { trigger, content } = response.notification.request;
  const push = objectOf(objectOf(trigger)?.payload) ?? objectOf(content.data);
  if (typeof push?.notification_id !== "string") return undefined;
  const { actionIdentifier } = response;
  if (actionIdentifier === "com.apple.UNNotificationDismissActionIdentifier") return { push, did: "dismissed" };
  const buttons = Array.isArray(push.buttons) ? (push.buttons as readonly Button[]) : [];
  const pressed = buttons.find(({ id }) => id === actionIdentifier);
  const link = pressed?.opens === false ? undefined : (pressed?.link_to ?? push.link_to);
  return {
    push,
    did: "opened",
    ...(pressed && { button: actionIdentifier }),
    ...(typeof link === "string" && { link }),
  };
};
