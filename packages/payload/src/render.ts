import {
  type NotificationContent,
  type NotificationId,
  type ProjectId,
  withoutDangerousLinks,
} from "@herald/contracts";
import { mergePatch } from "@herald/rules";
import { createChooseLocalization } from "./choose-localization.ts";

/** The texts and links that a device shows: the content's own, or the localization's for its locale. */
export type Words = Pick<NotificationContent, "title" | "body" | "link_to" | "image"> & {
  /** Titles of buttons in the localization, by id. */
  readonly buttons?: Readonly<Record<string, string>> | undefined;
};

/** The content's own words, replaced by the words of one key of `localizations` if it is given. */
export const wordsOf = (content: NotificationContent, localization: string | undefined): Words => {
  const { title, body, link_to, image } = content;
  const own: Words = { title, body, link_to, image };
  return localization === undefined ? own : { ...own, ...content.localizations?.[localization] };
};

/** Locales whose choice is cached: more than really exist, and few enough if clients invent them. */
const maxChosen = 1_000;

/** Renders once for each key of `localizations`, and for none of them, when the first device needs it. */
export const perLocalizationKey = <Rendered>(
  content: NotificationContent,
  render: (key: string | undefined) => Rendered,
): ((locale: string | undefined) => Rendered) => {
  if (content.localizations === undefined) {
    let only: { readonly rendered: Rendered } | undefined;
    return () => {
      only ??= { rendered: render(undefined) };
      return only.rendered;
    };
  }
  const choose = createChooseLocalization(Object.keys(content.localizations));
  const rendered = new Map<string | undefined, Rendered>();
  const chosen = new Map<string, string | undefined>();
  return (locale) => {
    let key: string | undefined;
    if (locale !== undefined) {
      key = chosen.has(locale) ? chosen.get(locale) : choose(locale);
      if (chosen.size < maxChosen) chosen.set(locale, key);
    }
    const known = rendered.get(key);
    if (known !== undefined) return known;
    const fresh = render(key);
    rendered.set(key, fresh);
    return fresh;
  };
};

/** Renders each localization once, when the first device needs it. */
export const perLocalization = <Rendered>(
  content: NotificationContent,
  render: (words: Words) => Rendered,
): ((locale: string | undefined) => Rendered) => perLocalizationKey(content, (key) => render(wordsOf(content, key)));

/** How a push is rendered for one device, beyond its words. */
export type PushForm = {
  /** The device is asked to report that the push arrived, at a random time within this many seconds. */
  readonly receipt?: number;
  /** The device shows the notification's buttons. */
  readonly buttons?: true;
};

export const plainForm: PushForm = Object.freeze({});

/** Whether devices get a notification in more than the plain form: their kits report it, or show its buttons. */
export const hasForms = ({ receipts, buttons }: Pick<NotificationContent, "receipts" | "buttons">): boolean =>
  buttons !== undefined || (receipts !== undefined && receipts !== false);

/** Renders each form once, when the first device needs it. */
export const perForm = <Rendered>(render: (form: PushForm) => Rendered): ((form: PushForm) => Rendered) => {
  const rendered = new Map<PushForm, Rendered>();
  return (form) => {
    const known = rendered.get(form);
    if (known !== undefined) return known;
    const fresh = render(form);
    rendered.set(form, fresh);
    return fresh;
  };
};

/** The notification that a payload belongs to. The device needs these ids to report an open. */
export type PushOrigin = {
  readonly projectId: ProjectId;
  readonly notificationId: NotificationId;
  /** Of the start of a Live Activity: the channel that the device follows in place of a token. */
  readonly channel?: string | undefined;
};

/** A later push with the same id replaces this one. By default only a repeat of this push has the same id. */
export const collapseIdOf = ({ collapse_id }: NotificationContent, { notificationId }: PushOrigin): string =>
  collapse_id ?? notificationId;

/** JSON around the open token, the only difference between two devices with the same words. */
export type PayloadTemplate = { readonly head: string; readonly tail: string };

/** An object without its undefined fields, so that they neither count as bytes nor override other fields. */
export const compact = (fields: Record<string, unknown>): Record<string, unknown> => {
  // A loop, because texts of many recipients are rendered for each device.
  const kept: Record<string, unknown> = {};
  for (const name in fields) if (fields[name] !== undefined) kept[name] = fields[name];
  return kept;
};

/** Merges the caller's override over the rendered payload. The gateway refuses dangerous links; any that it missed are removed. */
export const override = (
  rendered: Record<string, unknown>,
  { data, click_action }: Pick<NotificationContent, "data" | "click_action">,
  { link_to }: Words,
  patch: NotificationContent["ios"],
): Record<string, unknown> => {
  if (patch !== undefined) return withoutDangerousLinks(mergePatch(rendered, patch));
  // No other rendered field is a link.
  return (data ?? click_action ?? link_to) === undefined ? rendered : withoutDangerousLinks(rendered);
};

/**
 * The JSON body of a payload for one device. It is rendered once per localization; then each device costs two concatenations.
 * `openToken` must be plain ASCII without quotes, as signed tokens are.
 */
export type BodyOf = (openToken: string, locale?: string) => string;

/** Adds the ids of notification and project after the override: without them an app cannot report the open. */
export const bodyOf = (
  content: NotificationContent,
  { projectId, notificationId }: PushOrigin,
  payload: (words: Words) => Record<string, unknown>,
): BodyOf => {
  const templateFor = perLocalization(content, (words): PayloadTemplate => {
    const named = { ...payload(words), notification_id: notificationId, project_id: projectId };
    return { head: `${JSON.stringify(named).slice(0, -1)},"token":"`, tail: '"}' };
  });
  return (openToken, locale) => {
    const { head, tail } = templateFor(locale);
    return head + openToken + tail;
  };
};
