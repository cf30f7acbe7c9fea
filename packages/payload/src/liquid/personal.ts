import {
  type LiquidProgram,
  linkProblem,
  type NotificationContent,
  type PersonalTexts,
  words,
} from "@herald/contracts";
import { perLocalizationKey } from "../render.ts";
import { type LiquidValues, newRoom } from "./evaluate.ts";
import { LiquidRenderError } from "./filters.ts";
import { type CompiledText, mapTexts, renderText, type Texts } from "./texts.ts";

/** Why a device gets no push: its texts cannot be rendered with its values. */
export type RenderFailure = {
  readonly reason: LiquidRenderError["reason"] | "link-refused";
  readonly detail: string;
};

export type RenderPersonal = (
  values: LiquidValues,
  locale: string | undefined,
) => { readonly content: NotificationContent } | RenderFailure;

/** The danger of a rendered link, or what its form lacks. */
const problemOf = (name: string, link: string): string | undefined =>
  linkProblem(link) ?? (name === "image" ? words.image : words.link_to).safeParse(link).error?.issues[0]?.message;

/** A text that is rendered for each device: a field of the notification, or of its `data`. */
type Rendered = {
  readonly name: string;
  readonly key: string | undefined;
  readonly program: LiquidProgram;
  readonly locale: string;
  readonly isLink: boolean;
};

/**
 * Renders the texts of one notification for each device, in the localization of its locale. Parses them once, for the first device. Texts
 * that no gateway compiled fail their own notification alone.
 */
export const createRenderPersonal = (
  content: NotificationContent,
  { texts: json, locale, values: shared }: PersonalTexts,
): RenderPersonal => {
  const { localizations: _, ...plain } = content;
  const prepare = () => {
    const texts: Texts<CompiledText> = JSON.parse(json);
    const { localizations = {}, ...own } = texts;
    // Only the keys decide which of them a device gets.
    const keys = { ...content, localizations: texts.localizations as NotificationContent["localizations"] };
    /** What all devices of a localization have in common, and what is rendered for each. */
    return perLocalizationKey(keys, (chosen) => {
      const words = (chosen === undefined ? undefined : localizations[chosen]) ?? {};
      const rendered: Rendered[] = [];
      const common = mapTexts<CompiledText, string, Texts<CompiledText>>(
        { ...own, ...words } as Texts<CompiledText>,
        (text, { path: [name = "", key], isLink }) => {
          if (typeof text === "string") return text;
          const isLocalized = chosen !== undefined && Object.hasOwn(words, name);
          rendered.push({ name, key, program: text, locale: isLocalized ? chosen : locale, isLink });
          return "";
        },
      );
      const { buttons } = (chosen === undefined ? undefined : content.localizations?.[chosen]) ?? {};
      const titles = chosen !== undefined && buttons && { localizations: { [chosen]: { buttons } } };
      return { common: { ...plain, ...common, ...titles }, rendered };
    });
  };
  let textsFor: ReturnType<typeof prepare> | undefined;

  return (values, deviceLocale) => {
    try {
      textsFor ??= prepare();
      const found = textsFor(deviceLocale);
      const { data } = found.common;
      const own: Record<string, unknown> = { ...found.common };
      const ownData: Record<string, string> | undefined = data && { ...data };
      if (ownData) own.data = ownData;
      const all = { ...shared, ...values };
      const room = newRoom();
      for (const { name, key, program, locale: language, isLink } of found.rendered) {
        const result = renderText(program, all, language, room);
        const problem = isLink ? problemOf(name, result) : undefined;
        if (problem !== undefined) return { reason: "link-refused", detail: `${name}: ${problem}` };
        if (ownData && key !== undefined) ownData[key] = result;
        else own[name] = result;
      }
      return { content: own as NotificationContent };
    } catch (error) {
      if (error instanceof LiquidRenderError) return { reason: error.reason, detail: error.message };
      return { reason: "render-failed", detail: "its texts cannot be read" };
    }
  };
};
