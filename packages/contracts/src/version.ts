/** A parsed version of an app or a system. */
export type Version = {
  /** `2.10.0` is 2, 10: trailing zeros do not count. Digits without leading zeros, because a build number may exceed the exact integers. */
  readonly numbers: readonly string[];
  /** `beta.2` of `2.10-beta.2`, split at its dots; empty for a release. */
  readonly prerelease: readonly string[];
};

/** The maximum length of a version: longer text is not one. */
const maxLength = 128;

/** Dotted numbers, a pre-release after `-` and a build after `+`, as in semver.org, but with any count of numbers. */
const form = /^v?(\d+(?:\.\d+)*)(?:-([0-9a-z-]+(?:\.[0-9a-z-]+)*))?(?:\+[0-9a-z.-]+)?$/i;

const digits = (text: string): string => text.replace(/^0+(?=\d)/, "");

/** Undefined if the text is not a version. Drops a build suffix (`+…`), which does not affect the order. */
export const parseVersion = (text: string): Version | undefined => {
  if (text.length > maxLength) return undefined;
  const [, release, prerelease = ""] = form.exec(text) ?? [];
  if (release === undefined) return undefined;
  const numbers = release.split(".").map(digits);
  while (numbers.at(-1) === "0") numbers.pop();
  return { numbers, prerelease: prerelease === "" ? [] : prerelease.toLowerCase().split(".") };
};

const compareTexts = (one: string, other: string): number => (one < other ? -1 : one > other ? 1 : 0);

/** Both arguments must have no leading zeros. */
const compareDigits = (one: string, other: string): number => one.length - other.length || compareTexts(one, other);

/** As in semver.org: numbers by value and before words, words by characters. */
const compareIdentifiers = (one: string, other: string): number => {
  const [left, right] = [/^\d+$/.test(one), /^\d+$/.test(other)];
  if (left && right) return compareDigits(digits(one), digits(other));
  return left === right ? compareTexts(one, other) : left ? -1 : 1;
};

const comparePrereleases = (one: readonly string[], other: readonly string[]): number => {
  // A release comes after its pre-releases.
  if (one.length === 0 || other.length === 0) return other.length - one.length;
  for (let at = 0; at < Math.min(one.length, other.length); at++) {
    const order = compareIdentifiers(one[at] as string, other[at] as string);
    if (order !== 0) return order;
  }
  return one.length - other.length;
};

/** Below 0 if `one` is older, above 0 if it is newer. */
export const compareVersions = (one: Version, other: Version): number => {
  for (let at = 0; at < Math.max(one.numbers.length, other.numbers.length); at++) {
    const order = compareDigits(one.numbers[at] ?? "0", other.numbers[at] ?? "0");
    if (order !== 0) return order;
  }
  return comparePrereleases(one.prerelease, other.prerelease);
};
