import { hasLiquid } from "@herald/contracts";
import { type CompiledText, mapTexts, type Texts } from "../liquid/texts.ts";
import { compileLiquid } from "./compile.ts";

/** A problem of a text, with its place in the notification and in the text. */
export type TextProblem = { readonly path: readonly string[]; readonly message: string };

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
  return { content: compiled, problems };
};
