import type { z } from "zod";

type Schema = z.core.$ZodType;
/** The parts of a zod definition that lead further in. */
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

/** What stands behind `.optional()`, `.transform()`, unions and the like: the schemas that look at the value itself. */
export const bareSchemas = (schema: Schema): Schema[] => {
  const { innerType, in: before, out, getter, options, left, right } = schema._zod.def as Definition;
  // What `z.preprocess` does first knows no fields.
  const input = before?._zod.def.type === "transform" ? out : before;
  const next = [innerType ?? input ?? getter?.(), ...(options ?? []), left, right].filter(
    (inner) => inner !== undefined,
  );
  return next.length === 0 ? [schema] : next.flatMap(bareSchemas);
};

/** The schemas that judge the value at a path; several where unions leave it open, none where nothing is known. */
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
