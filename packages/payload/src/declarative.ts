import type { NotificationContent } from "@herald/contracts";
import { compact, type PushForm, type PushOrigin, perLocalization, plainForm } from "./render.ts";
import { webPushPayload } from "./webpush.ts";

/** The media type of a declarative push. */
export const declarativeType = "application/notification+json";

/** `web_push` in a payload that the browser shows by itself. */
const declarativeMark = 8030;

/** The payload for one device; undefined if the browser cannot show this notification by itself. */
export type DeclarativeBody = (openToken: string, locale?: string) => string | undefined;

type Fields = Readonly<Record<string, unknown>>;

/** JSON around the two places of the open token. */
type DeclarativeTemplate = { readonly head: string; readonly middle: string };

const isText = (value: unknown) => value === undefined || typeof value === "string";
const isFlag = (value: unknown) => value === undefined || typeof value === "boolean";
const isBadge = (value: unknown) => value === undefined || /^\d{1,15}$/.test(String(value));
const isDirection = (value: unknown) => value === undefined || ["auto", "ltr", "rtl"].includes(String(value));
const isUrl = (value: unknown) => value === undefined || (typeof value === "string" && URL.canParse(value));

/**
 * WebKit drops a push with any other value in these fields, which an override may have set. Its actions would need
 * their own links: the worker shows a push with buttons.
 */
const isShowable = ({ title, body, tag, lang, dir, icon, silent, mutable, app_badge, actions }: Fields): boolean =>
  typeof title === "string" &&
  title !== "" &&
  [body, tag, lang].every(isText) &&
  [silent, mutable].every(isFlag) &&
  isDirection(dir) &&
  isUrl(icon) &&
  isBadge(app_badge) &&
  actions === undefined;

const isObject = (value: unknown): value is Fields => typeof value === "object" && value !== null;

/**
 * The page of the site that a click opens, up to the open token and after it. Undefined for a link to another site: that site could not
 * report the open, and would read the token.
 */
const pageOf = (link: unknown, site: string, notificationId: string): readonly [string, string] | undefined => {
  const url = URL.parse(typeof link === "string" ? link : "", site);
  // A link such as `app://orders` is for phones.
  const page = url === null || /^https?:$/.test(url.protocol) ? (url?.href ?? site) : `${site}/`;
  if (new URL(page).origin !== site) return undefined;
  const [path = "", fragment] = page.split(/#(.*)/s);
  const mark = `herald=${notificationId}.`;
  return fragment === undefined
    ? [`${path}#${mark}`, ""]
    : [`${path}${path.includes("?") ? "&" : "?"}${mark}`, `#${fragment}`];
};

/**
 * Renders a notification for Declarative Web Push (w3c.github.io/push-api), where Safari shows it without the service worker and a click
 * opens `notification.navigate`. An older Safari gives the same body to the worker, so it also has every field of {@link webPushPayload}.
 * `site`: the origin of the pages. The page that a click opens finds `herald=<notification>.<open token>` in its address.
 */
export const renderDeclarative = (
  content: NotificationContent,
  origin: PushOrigin,
  site: string,
  form: PushForm = plainForm,
): DeclarativeBody => {
  const { projectId, notificationId } = origin;
  const templateFor = perLocalization(content, (words): DeclarativeTemplate | null => {
    const { notification, ...rest } = webPushPayload(content, origin, words, form);
    if (!isObject(notification)) return null;
    // The worker then gets the push, and reports it. Safari shows it in any case.
    const mutable = form.receipt === undefined ? {} : { mutable: true };
    const shown: Fields = compact({ app_badge: rest.app_badge, ...notification, ...mutable });
    const page = pageOf(shown.navigate ?? rest.link_to, site, notificationId);
    if (!isShowable(shown) || page === undefined) return null;
    const [before, after] = page;
    const data = { ...(isObject(shown.data) && shown.data), notification_id: notificationId, project_id: projectId };
    // `navigate` must come last in the last field: the token follows it.
    const { navigate: _, ...others } = shown;
    const last = { ...others, data, navigate: before };
    const fields = {
      ...rest,
      ...mutable,
      web_push: declarativeMark,
      notification_id: notificationId,
      project_id: projectId,
      notification: last,
    };
    return {
      head: JSON.stringify(fields).slice(0, -3),
      middle: `${JSON.stringify(after).slice(1, -1)}"},"token":"`,
    };
  });
  return (openToken, locale) => {
    const template = templateFor(locale);
    return template === null ? undefined : `${template.head}${openToken}${template.middle}${openToken}"}`;
  };
};
