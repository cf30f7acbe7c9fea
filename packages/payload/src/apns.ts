import type { NotificationContent } from "@herald/contracts";
import { perLocalization, type Words } from "./localize.ts";
import { compact, type Origin, override, type Template, withOpenToken } from "./render.ts";

/** The most bytes that APNs takes in a payload. */
export const apnsMaxBytes = 4096;

/** One notification as APNs gets it. */
export type ApnsRendering = {
  /** Header `apns-push-type`. */
  readonly pushType: "alert" | "background";
  /** Header `apns-priority`: 10 at once, 5 with regard to the battery; background pushes may only use 5. */
  readonly priority: 10 | 5;
  /** The JSON body for one device. `openToken` must be plain ASCII without quotes, as signed ones are. */
  readonly body: (openToken: string, locale?: string) => string;
};

const aps = (content: NotificationContent, words: Words): Record<string, unknown> => {
  if (content.silent) return { "content-available": 1 };
  return compact({
    alert: compact({ title: words.title, body: words.body }),
    badge: content.badge,
    sound: content.sound,
    category: content.category,
    // An image is fetched by the app's notification service extension, which only runs for mutable content.
    "mutable-content": words.image === undefined ? undefined : 1,
  });
};

export const apnsPushType = ({ silent }: NotificationContent): ApnsRendering["pushType"] =>
  silent ? "background" : "alert";

export const apnsPriority = ({ silent, priority }: NotificationContent): ApnsRendering["priority"] =>
  silent || priority === "normal" ? 5 : 10;

/** The payload without what names the notification. */
export const apnsPayload = (content: NotificationContent, words: Words): Record<string, unknown> =>
  override(
    compact({ aps: aps(content, words), link_to: words.link_to, image: words.image, data: content.data }),
    content.ios,
  );

const template = (content: NotificationContent, origin: Origin, words: Words): Template => {
  const rendered = apnsPayload(content, words);
  // After the override: an app that cannot tell which notification this is cannot report its open.
  return withOpenToken({ ...rendered, notification_id: origin.notificationId, project_id: origin.projectId });
};

/** Renders a notification for APNs; the work is done once for each localization, then a device costs two concatenations. */
export const renderApns = (content: NotificationContent, origin: Origin): ApnsRendering => {
  const templateFor = perLocalization(content, (words) => template(content, origin, words));
  return {
    pushType: apnsPushType(content),
    priority: apnsPriority(content),
    body: (openToken, locale) => {
      const { head, tail } = templateFor(locale);
      return head + openToken + tail;
    },
  };
};
