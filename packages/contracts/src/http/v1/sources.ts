import { z } from "zod";
import { hasLiquid, liquidLimits } from "../../liquid-program.ts";
import { localizationsOf, words } from "./notification-content.ts";

const tooLong = `must be at most ${liquidLimits.sourceBytes} bytes`;

const refuse = (schema: z.ZodType, text: string, path: string[], context: z.core.$RefinementCtx): void => {
  for (const issue of schema.safeParse(text).error?.issues ?? [])
    context.addIssue({ ...issue, path: [...path, ...issue.path], input: text } as z.core.$ZodRawIssue);
};

/** A text, or Liquid from which it will be rendered: its rules hold for the result, except that a text without Liquid is its own. */
const orLiquid = (schema: z.ZodOptional<z.ZodType<string>>) =>
  z
    .string()
    .superRefine((text, context) => {
      if (!hasLiquid(text)) refuse(schema, text, [], context);
      else if (Buffer.byteLength(text) > liquidLimits.sourceBytes)
        context.addIssue({ code: "custom", message: tooLong });
    })
    .optional()
    .meta({ ...z.globalRegistry.get(schema.unwrap()), ...z.globalRegistry.get(schema) });

type Word = keyof typeof words;
const sourceWords: { readonly [Name in Word]: ReturnType<typeof orLiquid> } = {
  title: orLiquid(words.title),
  body: orLiquid(words.body),
  link_to: orLiquid(words.link_to),
  image: orLiquid(words.image),
};

/** The fields of a notification that may be Liquid, before they are rendered. Values of `data` are any text. */
export const sources = { ...sourceWords, localizations: localizationsOf(sourceWords) };

type Sources = { readonly [Name in Word]?: string | undefined };

/** Applies the rules of a text to texts that look like Liquid and are not. */
export const refuseLiquid = (
  { localizations = {}, ...own }: Sources & { readonly localizations?: Readonly<Record<string, Sources>> | undefined },
  context: z.core.$RefinementCtx,
): void => {
  const check = (texts: Sources, path: string[]) => {
    for (const name of Object.keys(words) as Word[]) {
      const text = texts[name];
      if (text !== undefined && hasLiquid(text)) refuse(words[name], text, [...path, name], context);
    }
  };
  check(own, []);
  for (const [locale, texts] of Object.entries(localizations)) check(texts, ["localizations", locale]);
};
