import type { TextPlace } from "@herald/payload";

/** What stands for a text that values will complete, so that all other fields can be checked before. */
export const placeholder = ({ path, isLink }: TextPlace): string =>
  isLink ? `https://example.com/${path.at(-1)}` : (path.at(-1) ?? "");
