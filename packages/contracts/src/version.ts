/** A version as apps and systems write them, ready to be compared. */
export type Version = {
  /** `2.10.0` is 2, 10: trailing zeros say nothing. Digits without leading zeros, for a build number may be longer than a number is exact. */
  readonly numbers: readonly string[];
  /** `beta.2` of `2.10-beta.2`, split at its dots; empty for a release. */
  readonly prerelease: readonly string[];
};

/** Longer than any version: what is longer is a text. */
const maxLength = 128;

/** Dotted numbers, a pre-release behind `-` and a build behind `+`, as semver.org has them, with any count of numbers. */
const form = /^v?(\d+(?:\.\d+)*)(?:-([0-9a-z-]+(?:\.[0-9a-z-]+)*))?(?:\+[0-9a-z.-]+)?$/i;

const digits = (text: string): string => text.replace(/^0+(?=\d)/, "");

/** Undefined for what is no version. A build suffix (`+…`) is dropped: it says nothing about order. */
export const parseVersion = (text: string): Version | undefined => {
  if (text.length > maxLength) return undefined;
  const [, release, prerelease = ""] = form.exec(text) ?? [];
  if (release === undefined) return undefined;
  const numbers = release.split(".").map(digits);
  while (numbers.at(-1) === "0") numbers.pop();
  return { numbers, prerelease: prerelease === "" ? [] : prerelease.toLowerCase().split(".") };
};

const compareTexts = (one: string, other: string): number => (one < other ? -1 : one > other ? 1 : 0);

/** Both without leading zeros. */
const compareDigits = (one: string, other: string): number => one.length - other.length || compareTexts(one, other);

/** By semver.org: numbers by their value and before words, words by their characters. */
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

/** Below 0 where `one` is the older version, above 0 where it is the newer. */
export const compareVersions = (one: Version, other: Version): number => {
  for (let at = 0; at < Math.max(one.numbers.length, other.numbers.length); at++) {
    const order = compareDigits(one.numbers[at] ?? "0", other.numbers[at] ?? "0");
    if (order !== 0) return order;
  }
  return comparePrereleases(one.prerelease, other.prerelease);
};
