const tokens = /"(?:[^"\\]|\\.)*"|[{}:]/g;

/** The name that an object of a JSON text has twice; undefined: none. `JSON.parse` would keep the last value without a word. */
export const repeatedName = (text: string): string | undefined => {
  const open: Set<string>[] = [];
  let last = "";
  for (const [token] of text.matchAll(tokens)) {
    if (token === "{") open.push(new Set());
    else if (token === "}") open.pop();
    else if (token !== ":") last = token;
    else {
      const name = JSON.parse(last) as string;
      if (open.at(-1)?.has(name)) return name;
      open.at(-1)?.add(name);
    }
  }
  return undefined;
};

/** Parses JSON as a strict reader does. @throws Error for text that is no JSON, and for an object with a repeated name */
export const parseStrictJson = (text: string): unknown => {
  const value: unknown = JSON.parse(text);
  const repeated = repeatedName(text);
  if (repeated !== undefined) throw new Error(`the name \`${repeated}\` is repeated in an object`);
  return value;
};
