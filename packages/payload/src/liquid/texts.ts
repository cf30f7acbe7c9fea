import { type LiquidProgram, type NotificationContent, readLocale } from "@herald/contracts";
import { evaluateLiquid, type LiquidValues, newRoom, type Room } from "./evaluate.ts";
import { LiquidRenderError } from "./filters.ts";

/** The fields of a notification that may be Liquid, by language where they differ. `Text` is a source, or its program. */
type Words<Text> = { readonly [Name in (typeof wordNames)[number]]?: Text | undefined };
export type Texts<Text> = Words<Text> & {
  readonly data?: Readonly<Record<string, Text>> | undefined;
  readonly localizations?: Readonly<Record<string, Words<Text>>> | undefined;
};

const wordNames = ["title", "body", "link_to", "image"] as const;
const links: ReadonlySet<string> = new Set(["link_to", "image"]);

export type TextPlace = {
  readonly path: readonly string[];
  readonly isLink: boolean;
  /** The localization; undefined: the notification's own text. */
  readonly locale?: string | undefined;
};

type MapText<From, To> = (text: From, place: TextPlace) => To;

const mapWords = <From, To>(words: Words<From>, map: MapText<From, To>, locale?: string): Words<To> => {
  const mapped: { [Name in (typeof wordNames)[number]]?: To } = {};
  for (const name of wordNames) {
    const text = words[name];
    const path = locale === undefined ? [name] : ["localizations", locale, name];
    if (text !== undefined) mapped[name] = map(text, { path, isLink: links.has(name), locale });
  }
  return mapped;
};

const mapEntries = <From, To>(fields: Readonly<Record<string, From>>, map: (value: From, key: string) => To) =>
  Object.fromEntries(Object.entries(fields).map(([key, value]) => [key, map(value, key)]));

/** Replaces each text of a notification; other fields stay. */
export const mapTexts = <From, To, Content extends Texts<From>>(
  content: Content,
  map: MapText<From, To>,
): Omit<Content, keyof Texts<From>> & Texts<To> => {
  const { data, localizations } = content;
  return {
    ...content,
    ...mapWords(content, map),
    ...(data && { data: mapEntries(data, (text, key) => map(text, { path: ["data", key], isLink: false })) }),
    ...(localizations && {
      // Titles of buttons are no Liquid, and stay.
      localizations: mapEntries(localizations, (words, locale) => ({
        ...(words as object),
        ...mapWords(words, map, locale),
      })),
    }),
  };
};

/** A text that needs no values, or a program. */
export type CompiledText = string | LiquidProgram;

const same = <Text>(text: Text): Text => text;

/** The compiled texts of a notification as dispatch gets them: JSON without its other fields. */
export const encodeTexts = ({ data, localizations, ...own }: Texts<CompiledText>): string =>
  JSON.stringify({
    ...mapWords(own, same),
    data,
    localizations: localizations && mapEntries(localizations, (words) => mapWords(words, same)),
  });

/**
 * Puts a later layer of a notification over an earlier one, such as a send over its template. A field of the later one replaces the
 * earlier one's in every language; within a layer, a localization wins.
 */
export const mergeLayers = <Text, Earlier extends Texts<Text>, Later extends Texts<Text>>(
  earlier: Earlier,
  later: Later,
): Omit<Earlier, keyof Later> & Later => {
  const kept = (words: Words<Text>): Words<Text> =>
    Object.fromEntries(Object.entries(words).filter(([name]) => later[name as keyof Later] === undefined));
  const localizations = { ...(earlier.localizations && mapEntries(earlier.localizations, kept)) };
  const tagOf = (locale: string) => readLocale(locale)?.tag ?? locale;
  const keys = new Map(Object.keys(localizations).map((key) => [tagOf(key), key]));
  for (const [locale, words] of Object.entries(later.localizations ?? {})) {
    // `pt_BR` is the template's `pt-BR`.
    const key = keys.get(tagOf(locale)) ?? locale;
    localizations[key] = { ...localizations[key], ...words };
  }
  const given = Object.fromEntries(Object.entries(later).filter(([, value]) => value !== undefined));
  return {
    ...earlier,
    ...given,
    ...(Object.keys(localizations).length > 0 && { localizations }),
  } as unknown as Omit<Earlier, keyof Later> & Later;
};

/** Locales that are kept: more than really exist, and few enough if clients invent them. */
const maxLanguages = 1_000;
const languages = new Map<string, string>();

/** A locale as BCP 47. One that JavaScript does not know counts as English. */
const languageOf = (locale: string): string => {
  const known = languages.get(locale);
  if (known !== undefined) return known;
  const language = canonical(locale);
  if (languages.size < maxLanguages) languages.set(locale, language);
  return language;
};

const canonical = (locale: string): string => {
  try {
    return Intl.getCanonicalLocales(locale.replaceAll("_", "-"))[0] ?? "en";
  } catch {
    return "en";
  }
};

/** Renders a text in the language of a locale. Throws {@link LiquidRenderError}. */
export const renderText = (text: LiquidProgram, values: LiquidValues, locale: string, room: Room): string =>
  evaluateLiquid(text, values, languageOf(locale), room);

export type RenderedTexts<Content> = Omit<Content, keyof Texts<CompiledText>> &
  Pick<NotificationContent, keyof Texts<string>>;

/**
 * Renders the texts of a notification, and returns a problem for each that cannot be rendered. `locale`: the language of the texts outside
 * `localizations`.
 */
export const renderTexts = <Content extends Texts<CompiledText>>(
  content: Content,
  values: LiquidValues,
  locale: string,
): { readonly content: RenderedTexts<Content>; readonly problems: readonly string[] } => {
  const problems: string[] = [];
  const room = newRoom();
  const rendered = mapTexts<CompiledText, string, Content>(content, (text, place) => {
    if (typeof text === "string") return text;
    // One problem is enough for all that do not fit.
    if (room.left < 0) return "";
    try {
      return renderText(text, values, place.locale ?? locale, room);
    } catch (error) {
      if (!(error instanceof LiquidRenderError)) throw error;
      problems.push(`${place.path.join(".")}: ${error.message}`);
      return "";
    }
  });
  return { content: rendered as unknown as RenderedTexts<Content>, problems };
};
