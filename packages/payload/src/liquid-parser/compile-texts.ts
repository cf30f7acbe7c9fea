import { hasLiquid, liquidLimits } from "@herald/contracts";
import { type CompiledText, encodeTexts, mapTexts, type Texts } from "../liquid/texts.ts";
import { compileLiquid } from "./compile.ts";

/** A problem of a text, with its place in the notification and in the text. */
export type TextProblem = { readonly path: readonly string[]; readonly message: string };

/** What to shorten, if the compiled texts of a notification take more bytes than they may. `encoded`: all of them. */
export const oversizedText = (texts: Texts<CompiledText>, encoded = encodeTexts(texts)): TextProblem | undefined => {
  const bytes = Buffer.byteLength(encoded);
  const max = liquidLimits.compiledBytes;
  if (bytes <= max) return undefined;
  let largest: { readonly path: readonly string[]; readonly bytes: number } = { path: [], bytes: 0 };
  mapTexts(texts, (text, { path }) => {
    const own = Buffer.byteLength(JSON.stringify(text));
    if (own > largest.bytes) largest = { path, bytes: own };
  });
  const message = `takes ${largest.bytes} of the ${bytes} bytes of all texts as they are compiled, and at most ${max} are accepted together: use shorter texts with fewer outputs, tags and filters`;
  return { path: largest.path, message };
};

/** Compiles the texts of a notification. They may show the values of `names`. Returns all problems, one for each text. */
export const compileTexts = <Content extends Texts<string>>(
  content: Content,
  names: ReadonlySet<string>,
): {
  readonly content: Omit<Content, keyof Texts<string>> & Texts<CompiledText>;
  readonly problems: readonly TextProblem[];
} => {
  const problems: TextProblem[] = [];
  const compiled = mapTexts<string, CompiledText, Content>(content, (text, { path, isLink }) => {
    if (!hasLiquid(text)) return text;
    const result = compileLiquid(text, { names, link: isLink });
    if ("program" in result) return result.program;
    const { line, column, message } = result.problem;
    problems.push({ path, message: `line ${line}, column ${column}: ${message}` });
    return "";
  });
  const oversized = problems.length === 0 ? oversizedText(compiled) : undefined;
  return { content: compiled, problems: oversized ? [oversized] : problems };
};
