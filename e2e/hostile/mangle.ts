import fc from "fast-check";

/** The paths of all values in JSON: every field, every element, and the root. */
export function placesOf(value: unknown, at: readonly string[] = []): (readonly string[])[] {
  if (typeof value !== "object" || value === null) return [at];
  return [at, ...Object.entries(value).flatMap(([name, inner]) => placesOf(inner, [...at, name]))];
}

/** A copy with one changed value: `change` maps the old value to the new one, and `undefined` removes it. */
export function changed(value: unknown, at: readonly string[], change: (before: unknown) => unknown): unknown {
  const [name, ...rest] = at;
  if (name === undefined) return change(value);
  const copy = (Array.isArray(value) ? [...value] : { ...(value as object) }) as Record<string, unknown>;
  copy[name] = changed(copy[name], rest, change);
  return copy;
}

/** Unexpected values for a field. */
const oddities: readonly unknown[] = [
  ...[null, true, false, 0, -1, 1.5, 1e308, -1e308, 2 ** 53, "", " ", "0", "null", "NaN", [], {}, [null], [[]], [{}]],
  ...["\0", "\u202e", "\ud800", "a.b", "*", ">", "push.evt.v1.>", "../..", "x".repeat(300), "prj_", "9".repeat(40)],
  ...[{ $ne: null }, { toString: 1 }, { length: -1 }, "0000-00-00T00:00:00Z", "9999-12-31T23:59:59.999Z", "+275760"],
  JSON.parse('{"__proto__":{"admin":true},"constructor":null}'),
];

const oddity = fc.oneof(
  { weight: 4, arbitrary: fc.constantFrom(...oddities) },
  fc.jsonValue({ maxDepth: 3 }),
  fc.string({ unit: "binary", maxLength: 40 }),
  fc.integer(),
);

const changes = fc.oneof(
  oddity.map((odd) => () => odd),
  fc.constant(() => undefined),
  fc.constant((before: unknown) => [before, before, before]),
  fc.constant((before: unknown) => (typeof before === "string" ? before.slice(1) : [before])),
  fc.constant((before: unknown) =>
    typeof before === "object" && before !== null && !Array.isArray(before) ? { ...before, surplus: 1 } : `${before}0`,
  ),
);

/** JSON in which one to three fields are changed. */
const fieldsChanged = (example: unknown): fc.Arbitrary<string> => {
  const one = fc.tuple(fc.constantFrom(...placesOf(example)), changes);
  return fc.array(one, { minLength: 1, maxLength: 3 }).map((all) => {
    const made = all.reduce<unknown>((value, [at, change]) => {
      try {
        return changed(value, at, change);
      } catch {
        return value; // the first change removed the place of the second
      }
    }, example);
    return JSON.stringify(made) ?? "";
  });
};

/** Anything from noise to a message with one wrong field, but nothing empty. */
export const mangled = (example: unknown): fc.Arbitrary<Buffer> => {
  const text = JSON.stringify(example);
  const any = fc.oneof(
    { weight: 2, arbitrary: fc.uint8Array({ maxLength: 200 }).map((bytes) => Buffer.from(bytes)) },
    { weight: 2, arbitrary: fc.json({ maxDepth: 4 }).map((json) => Buffer.from(json)) },
    { weight: 1, arbitrary: fc.nat(text.length - 1).map((end) => Buffer.from(text.slice(0, end))) },
    {
      weight: 1,
      arbitrary: fc.tuple(fc.nat(text.length - 1), fc.nat(255)).map(([at, byte]) => withByte(text, at, byte)),
    },
    { weight: 6, arbitrary: fieldsChanged(example).map((json) => Buffer.from(json)) },
  );
  return any.map((bytes) => (bytes.length > 0 ? bytes : Buffer.from(" ")));
};

const withByte = (text: string, at: number, byte: number): Buffer => {
  const bytes = Buffer.from(text);
  bytes[at] = byte;
  return bytes;
};

/** Parses bytes as JSON in valid UTF-8, like the services. */
export function jsonOf(bytes: Uint8Array): { readonly json: unknown } | undefined {
  try {
    return { json: JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes)) };
  } catch {
    return undefined;
  }
}
