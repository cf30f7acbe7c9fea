export type Json = Record<string, unknown>;

/** Undefined for a text that is not a JSON object. */
export const objectOf = (text: string): Json | undefined => {
  try {
    const parsed: unknown = JSON.parse(text);
    return typeof parsed === "object" && parsed !== null && !Array.isArray(parsed) ? (parsed as Json) : undefined;
  } catch {
    return undefined;
  }
};
