/** The beginning of a text: at most `max` UTF-16 code units, and no half of an emoji at its end. */
export const cutText = (text: string, max: number): string => {
  const last = text.length > max ? text.charCodeAt(max - 1) : 0;
  const isHigh = last >= 0xd800 && last <= 0xdbff;
  return text.slice(0, isHigh ? max - 1 : max);
};
