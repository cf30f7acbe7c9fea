import fc from "fast-check";

/** Any Unicode character. Not fc.string({ unit: "binary" }), nor fc.webPath(): they take a second to list all characters. */
const character = fc.oneof(
  fc.integer({ min: 0, max: 0x10_ff_ff }).map((code) => String.fromCodePoint(code)),
  fc.integer({ min: 0, max: 0x7f }).map((code) => String.fromCodePoint(code)),
);

/** Text of any characters, also control characters; halves of a pair stand alone nowhere in it. */
export const anyText = ({ minLength = 0 } = {}): fc.Arbitrary<string> =>
  fc.string({ unit: character.filter((text) => text.isWellFormed()), minLength });
