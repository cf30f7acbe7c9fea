import type { NotificationContent } from "@herald/contracts";

/** What a device reads: the content's own words, or those of the localization that was chosen for it. */
export type Words = Pick<NotificationContent, "title" | "body" | "link_to" | "image">;

const normal = (locale: string): string => locale.replaceAll("_", "-").toLowerCase();

/**
 * The key of `localizations` that serves a device's locale: `pt-BR` itself, else what it begins with (`pt`), else none,
 * which means the content's own words. Case and `_` for `-` do not matter.
 */
export const chooseLocalization = (content: NotificationContent, locale: string | undefined): string | undefined => {
  if (locale === undefined || content.localizations === undefined) return undefined;
  const keys = new Map(Object.keys(content.localizations).map((key) => [normal(key), key]));
  for (let tag = normal(locale); tag !== ""; tag = tag.slice(0, Math.max(0, tag.lastIndexOf("-")))) {
    const key = keys.get(tag);
    if (key !== undefined) return key;
  }
  return undefined;
};

/** The words under one key of `localizations` over the content's own; undefined gives the content's own. */
export const wordsOf = (content: NotificationContent, localization: string | undefined): Words => {
  const { title, body, link_to, image } = content;
  const own: Words = { title, body, link_to, image };
  return localization === undefined ? own : { ...own, ...content.localizations?.[localization] };
};

/** Locales of devices whose choice is remembered: more than there are, and few enough where strangers make them up. */
const maxChosen = 1_000;

/** Renders once for each localization that is really asked for, however many devices there are. */
export const perLocalization = <Rendered>(
  content: NotificationContent,
  render: (words: Words) => Rendered,
): ((locale: string | undefined) => Rendered) => {
  const rendered = new Map<string | undefined, Rendered>();
  const chosen = new Map<string, string | undefined>();
  return (locale) => {
    let key: string | undefined;
    if (locale !== undefined && content.localizations !== undefined) {
      key = chosen.has(locale) ? chosen.get(locale) : chooseLocalization(content, locale);
      if (chosen.size < maxChosen) chosen.set(locale, key);
    }
    const known = rendered.get(key);
    if (known !== undefined) return known;
    const fresh = render(wordsOf(content, key));
    rendered.set(key, fresh);
    return fresh;
  };
};
