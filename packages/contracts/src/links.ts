import type { PathProblem } from "./named.ts";

/** Schemes that run code in the app, or show content of the notification itself where a page is expected. */
const refusedSchemes = ["javascript", "data", "vbscript", "blob"] as const;
const refused = new RegExp(`^(?:${refusedSchemes.join("|")}):`);

/** Levels of nested percent-encoding that are decoded, more than any reader decodes. */
const maxDecodings = 5;

const decode = (link: string): string =>
  link.replace(/%([0-9a-f]{2})/gi, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));

/**
 * A link as the most lenient reader parses it: percent-encoding decoded, invisible characters and spaces dropped, `\` as `/`, lower case.
 */
const asLenientlyRead = (link: string): string => {
  let text = link;
  for (let times = 0; times < maxDecodings && text.includes("%"); times++) text = decode(text);
  return text
    .replace(/[\p{Cc}\p{Cf}\s]/gu, "")
    .replaceAll("\\", "/")
    .toLowerCase();
};

/** The danger of a link, in words; undefined if it may be opened. Does not check its form otherwise. */
export const linkProblem = (link: string): string | undefined => {
  if (/\p{Cc}/u.test(link)) return "may not contain control characters, tabs or line breaks";
  const read = asLenientlyRead(link);
  if (refused.test(read)) return `may not begin with ${refusedSchemes.map((scheme) => `\`${scheme}:\``).join(", ")}`;
  if (read.startsWith("//"))
    return "may not begin with `//` or `/\\`: that leads to another host; write the whole URL, or a path such as /news/42";
  return undefined;
};

/**
 * Whether a text is a whole URL for every reader. `URL` also reads `https:example.com`, and turns `\\` into `/`, and phones open neither.
 */
export const isWholeUrl = (text: string): boolean =>
  URL.canParse(text) && !text.includes("\\") && !/^https?:(?!\/\/[^/])/i.test(text);

/** Fields that a device, a browser or Herald's own kits open on a tap, anywhere in a payload. */
export const linkFields: ReadonlySet<string> = new Set(["link_to", "click_action", "link", "navigate"]);

/** The danger of a field's value. A list is checked as text, because JavaScript opens `["javascript:x"]` as `javascript:x`. */
const fieldProblem = (field: string, value: unknown): string | undefined =>
  linkFields.has(field) && (typeof value === "string" || Array.isArray(value)) ? linkProblem(String(value)) : undefined;

/** The dangerous links in a payload or in a part of one, each with its path. */
export const dangerousLinks = (value: unknown, path: PathProblem["path"] = []): PathProblem[] => {
  // Nearly always: the paths cost more than the search.
  if (!hasDangerousLink(value)) return [];
  return Object.entries(value as object).flatMap(([key, inner]) => {
    const here = [...path, Array.isArray(value) ? Number(key) : key];
    const message = fieldProblem(key, inner);
    return message === undefined ? dangerousLinks(inner, here) : [{ path: here, message }];
  });
};

const hasDangerousLink = (value: unknown): boolean => {
  if (typeof value !== "object" || value === null) return false;
  for (const key in value) {
    const inner = (value as Record<string, unknown>)[key];
    if (fieldProblem(key, inner) !== undefined || hasDangerousLink(inner)) return true;
  }
  return false;
};

/** The same value without its dangerous links. Itself if it has none, which is nearly always so. */
export const withoutDangerousLinks = <Value>(value: Value): Value => (hasDangerousLink(value) ? cleaned(value) : value);

const cleaned = <Value>(value: Value): Value => {
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map(cleaned) as Value;
  const kept = Object.entries(value).filter(([key, inner]) => fieldProblem(key, inner) === undefined);
  return Object.fromEntries(kept.map(([key, inner]) => [key, cleaned(inner)])) as Value;
};
