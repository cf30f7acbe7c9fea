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
