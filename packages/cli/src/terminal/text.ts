const segments = new Intl.Segmenter("en", { granularity: "grapheme" });
const wide =
  /^(\p{Emoji_Presentation}|\p{Extended_Pictographic}\uFE0F|[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6])/u;

const widthOf = (grapheme: string): number => (wide.test(grapheme) ? 2 : 1);

/** The width of a text in terminal columns. */
export const columnsOf = (text: string): number =>
  [...segments.segment(text)].reduce((sum, { segment }) => sum + widthOf(segment), 0);

/** Replaces control characters: devices and senders could use them to move the terminal's cursor. */
export const plain = (text: string): string => text.replaceAll(/[\p{Cc}\p{Cf}\u2028\u2029]+/gu, " ");

/** Line breaks and tabs; this program's own colours; and what else a terminal acts on. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: such characters are what it finds
const active = /(\r?\n|\t)|(\x1b\[(?:[12]|22|3[12369])m)|[\p{Cc}\p{Cf}\u2028\u2029]/gu;
const escaped = (unit: string): string => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`;

/** Escapes what a terminal acts on, as JSON does: devices and senders may write such characters. JSON stays equal when it is parsed. */
export const visible = (text: string, hasColors = false): string =>
  text.replaceAll(active, (found: string, space?: string, colour?: string) =>
    space !== undefined || (colour !== undefined && hasColors) ? found : found.split("").map(escaped).join(""),
  );

/** JSON that may reach a terminal, now or from the file or pipe that it goes into. */
export const toJson = (value: unknown, indent?: number): string => visible(JSON.stringify(value, null, indent));

/** Truncates to `width` columns, with an ellipsis. */
export const cut = (text: string, width: number): string => {
  if (columnsOf(text) <= width) return text;
  let kept = "";
  let columns = 0;
  for (const { segment } of segments.segment(text)) {
    columns += widthOf(segment);
    if (columns > width - 1) break;
    kept += segment;
  }
  return `${kept}…`;
};

/** Pads with spaces to `width` columns. */
export const pad = (text: string, width: number, right = false): string => {
  const spaces = " ".repeat(Math.max(0, width - columnsOf(text)));
  return right ? spaces + text : text + spaces;
};

const numbers = new Intl.NumberFormat("en");
export const formatNumber = (value: number): string => numbers.format(value);

/** Formats a value for people: a dash if empty, objects as JSON. */
export const show = (value: unknown): string => {
  if (value === undefined || value === null || value === "") return "–";
  if (typeof value === "number") return formatNumber(value);
  if (Array.isArray(value)) return value.length === 0 ? "–" : value.map(show).join(", ");
  return plain(typeof value === "object" ? JSON.stringify(value) : String(value));
};
