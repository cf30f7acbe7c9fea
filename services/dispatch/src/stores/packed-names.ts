/**
 * Names that a provider gave to some devices' messages as one text: what all of them begin with, then for each device the rest on
 * a line of its own, empty without a name. FCM's begin with the project, so that a row of five hundred is half as large.
 * Undefined when no entry has a name. Names have no line break.
 */
export const packNames = (names: readonly (string | undefined)[]): string | undefined => {
  let common: string | undefined;
  for (const name of names) {
    if (!name) continue;
    common ??= name.slice(0, -1);
    // The last character is never common: an empty line means that there is no name.
    const max = Math.min(common.length, name.length - 1);
    let same = 0;
    while (same < max && common.charCodeAt(same) === name.charCodeAt(same)) same++;
    if (same < common.length) common = common.slice(0, same);
  }
  if (common === undefined) return undefined;
  const { length } = common;
  return [common, ...names.map((name) => name?.slice(length) ?? "")].join("\n");
};

/** The names by device. */
export const unpackNames = (packed: string): (string | undefined)[] => {
  const [common = "", ...rests] = packed.split("\n");
  return rests.map((rest) => (rest === "" ? undefined : common + rest));
};
