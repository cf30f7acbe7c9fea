import type { z } from "zod";
import { bareSchemas } from "./schema-at.ts";

type Schema = z.core.$ZodType;

/** Where in a value lists of a greatest length may stand. */
type Place = {
  /** A list here may have so many entries. */
  readonly max?: number;
  readonly entries?: Place;
  readonly fields?: readonly (readonly [name: string, place: Place])[];
};

const places = new WeakMap<Schema, Place | null>();

/** What `.max()` of a list's schema says. */
const maxLength = (schema: Schema): number | undefined => {
  const { checks = [] } = schema._zod.def as { checks?: readonly { _zod: { def: { maximum?: number } } }[] };
  const [lowest] = checks.flatMap(({ _zod: { def } }) => def.maximum ?? []).toSorted((one, other) => one - other);
  return lowest;
};

/** Undefined where no list of a greatest length can be, which is nearly everywhere. */
const placeOf = (schema: Schema, above: ReadonlySet<Schema> = new Set()): Place | undefined => {
  const known = places.get(schema);
  if (known !== undefined) return known ?? undefined;
  const options = bareSchemas(schema);
  // A schema that holds itself, and one that leaves open what stands there, is left to zod.
  const [only] = options;
  if (only === undefined || options.length > 1 || above.has(only)) return undefined;
  const within = new Set([...above, only]);
  const { shape, element } = only._zod.def as { shape?: Record<string, Schema>; element?: Schema };
  const entries = element && placeOf(element, within);
  const fields = Object.entries(shape ?? {}).flatMap(([name, inner]) => {
    const place = placeOf(inner, within);
    return place ? [[name, place] as const] : [];
  });
  const max = element ? maxLength(only) : undefined;
  const place: Place | undefined =
    max === undefined && entries === undefined && fields.length === 0
      ? undefined
      : { ...(max === undefined ? {} : { max }), ...(entries && { entries }), ...(fields.length > 0 && { fields }) };
  places.set(schema, place ?? null);
  return place;
};

const cut = (place: Place, value: unknown): void => {
  if (typeof value !== "object" || value === null) return;
  if (Array.isArray(value)) {
    if (place.max !== undefined && value.length > place.max + 1) value.length = place.max + 1;
    if (place.entries) for (const entry of value) cut(place.entries, entry);
    return;
  }
  for (const [name, inner] of place.fields ?? [])
    if (Object.hasOwn(value, name)) cut(inner, (value as Record<string, unknown>)[name]);
};

/**
 * Shortens every list that is longer than its schema accepts to one entry more than that. zod looks at all entries, and describes
 * each that is wrong, before it counts them: a hundred thousand of them cost seconds. What is cut is refused all the same.
 */
export const cutLists = (schema: Schema, value: unknown): void => {
  const place = placeOf(schema);
  if (place) cut(place, value);
};
