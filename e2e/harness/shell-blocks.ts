/** The fenced blocks of a Markdown section that have this tag. */
export function codeBlocks(markdown: string, heading: string, tag: string): string[] {
  const [, ...sections] = markdown.split(/^## /m);
  const section = sections.find((text) => text.split("\n", 1)[0]?.trim() === heading);
  if (section === undefined) throw new Error(`there is no section "${heading}"`);
  return [...section.matchAll(/^```(\w+)\n(.*?)^```$/gms)].flatMap(([, found, block = ""]) =>
    found === tag ? [block] : [],
  );
}

/** The fenced blocks of a Markdown section with the tag `sh`, which readers run. Blocks without the tag are only shown. */
export const shellBlocks = (markdown: string, heading: string): string[] => codeBlocks(markdown, heading, "sh");
