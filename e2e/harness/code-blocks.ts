const linesOf = (text: string): string =>
  text
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => line !== "" && !/^(import|package) /.test(line))
    .join("\n");

/** The blocks of a page in a language that a source does not contain, however it is indented and wherever its imports are. */
export const blocksMissingIn = (source: string, page: string, language: string): string[] => {
  const blocks = [...page.matchAll(new RegExp(`^\`\`\`${language}\\n(.*?)^\`\`\`$`, "gms"))].map(
    ([, block = ""]) => block,
  );
  if (blocks.length === 0) throw new Error(`the page has no block of ${language}`);
  const known = linesOf(source);
  return blocks.filter((block) => !known.includes(linesOf(block)));
};
