import type { z } from "zod";

type Schema = z.core.$ZodType;
/** The parts of a zod definition that contain other schemas. */
type Definition = {
  innerType?: Schema;
  in?: Schema;
  out?: Schema;
  getter?: () => Schema;
  options?: readonly Schema[];
  left?: Schema;
  right?: Schema;
  shape?: Readonly<Record<string, Schema>>;
  element?: Schema;
  valueType?: Schema;
};

/** Unwraps `.optional()`, `.transform()`, unions and the like: returns the schemas that validate the value itself. */
export const bareSchemas = (schema: Schema): Schema[] => {
  const { innerType, in: before, out, getter, options, left, right } = schema._zod.def as Definition;
  // The transform of a `z.preprocess` has no fields, so its output is used.
  const input = before?._zod.def.type === "transform" ? out : before;
  const next = [innerType ?? input ?? getter?.(), ...(options ?? []), left, right].filter(
    (inner) => inner !== undefined,
  );
  return next.length === 0 ? [schema] : next.flatMap(bareSchemas);
};

/** The schemas that validate the value at a path: several in unions, none if the path is unknown. */
export const schemasAt = (roots: readonly Schema[], path: readonly PropertyKey[]): Schema[] => {
  let at = roots.flatMap(bareSchemas);
  for (const part of path) {
    at = at.flatMap((schema) => {
      const { shape, element, valueType } = schema._zod.def as Definition;
      const next = shape && Object.hasOwn(shape, part) ? shape[String(part)] : (element ?? valueType);
      return next ? bareSchemas(next) : [];
    });
  }
  return at;
};

/** Places in a value where the schema allows lists with a maximum length. */
type Place = {
  /** The maximum length of a list at this place. */
  readonly max: number | undefined;
  readonly entries: Place | undefined;
  readonly fields: readonly (readonly [name: string, place: Place])[];
};

const places = new WeakMap<Schema, Place | null>();

/** The maximum from `.max()` of a list's schema. */
const maxLength = (schema: Schema): number | undefined => {
  const { checks = [] } = schema._zod.def as { checks?: readonly { _zod: { def: { maximum?: number } } }[] };
  const [lowest] = checks.flatMap(({ _zod: { def } }) => def.maximum ?? []).toSorted((one, other) => one - other);
  return lowest;
};

/** Undefined if the value cannot contain a list with a maximum length, which is the usual case. */
const placeOf = (schema: Schema, above: ReadonlySet<Schema> = new Set()): Place | undefined => {
  const known = places.get(schema);
  if (known !== undefined) return known ?? undefined;
  const options = bareSchemas(schema);
  // Recursive schemas, and unions, are left to zod.
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
  const place = max === undefined && entries === undefined && fields.length === 0 ? null : { max, entries, fields };
  places.set(schema, place);
  return place ?? undefined;
};

const cut = (place: Place, value: unknown): void => {
  if (typeof value !== "object" || value === null) return;
  if (Array.isArray(value)) {
    if (place.max !== undefined && value.length > place.max + 1) value.length = place.max + 1;
    if (place.entries) for (const entry of value) cut(place.entries, entry);
    return;
  }
  for (const [name, inner] of place.fields)
    if (Object.hasOwn(value, name)) cut(inner, (value as Record<string, unknown>)[name]);
};

/**
 * Shortens every list that is too long for its schema to one entry above the maximum. Otherwise zod validates all entries, and describes
 * each wrong one, before it counts them: a hundred thousand entries cost seconds. The shortened list is still refused.
 */
export const cutLists = (schema: Schema, value: unknown): void => {
  const place = placeOf(schema);
  if (place) cut(place, value);
};
