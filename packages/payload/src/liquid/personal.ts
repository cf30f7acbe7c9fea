import { linkProblem, type NotificationContent, type PersonalTexts, words } from "@herald/contracts";
import { chooseLocalization } from "../render.ts";
import type { LiquidValues } from "./evaluate.ts";
import { LiquidRenderError } from "./filters.ts";
import { type CompiledText, mapTexts, renderText, type Texts } from "./texts.ts";

/** Why a device gets no push: its texts cannot be rendered with its values. */
export type RenderFailure = {
  readonly reason: "value-missing" | "render-failed" | "link-refused";
  readonly detail: string;
};

export type RenderPersonal = (
  values: LiquidValues,
  locale: string | undefined,
) => { readonly content: NotificationContent } | RenderFailure;

/** The danger of a rendered link, or what its form lacks. */
const problemOf = (name: string, link: string): string | undefined =>
  linkProblem(link) ?? (name === "image" ? words.image : words.link_to).safeParse(link).error?.issues[0]?.message;

/** Renders the texts of one notification for each device, in the localization of its locale. */
export const createRenderPersonal = (
  content: NotificationContent,
  { texts, locale, values: shared }: PersonalTexts,
): RenderPersonal => {
  const { localizations = {}, ...own } = texts;
  // Only the keys decide which of them a device gets.
  const keys = { ...content, localizations: localizations as NotificationContent["localizations"] };
  const { localizations: _, ...plain } = content;
  const textsIn = (chosen: string | undefined) => {
    const words = chosen === undefined ? {} : localizations[chosen];
    return { texts: { ...own, ...words }, localized: new Set(Object.keys(words ?? {})) };
  };
  const prepared = new Map<string | undefined, ReturnType<typeof textsIn>>();

  return (values, deviceLocale) => {
    const chosen = chooseLocalization(keys, deviceLocale);
    const found = prepared.get(chosen) ?? textsIn(chosen);
    prepared.set(chosen, found);
    const { localized } = found;
    const all = { ...shared, ...values };
    try {
      const rendered = mapTexts<CompiledText, string, Texts<CompiledText>>(
        found.texts as Texts<CompiledText>,
        (text, { path: [name = ""], isLink }) => {
          if (typeof text === "string") return text;
          const result = renderText(text, all, chosen !== undefined && localized.has(name) ? chosen : locale);
          const problem = isLink ? problemOf(name, result) : undefined;
          if (problem !== undefined) throw new LinkRefused(`${name}: ${problem}`);
          return result;
        },
      );
      return { content: { ...plain, ...rendered } };
    } catch (error) {
      if (error instanceof LinkRefused) return { reason: "link-refused", detail: error.message };
      if (error instanceof LiquidRenderError) return { reason: error.reason, detail: error.message };
      throw error;
    }
  };
};

class LinkRefused extends Error {}
