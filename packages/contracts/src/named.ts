import { z } from "zod";

type Shape = z.core.$ZodLooseShape;
type Meta = { readonly description?: string; readonly examples?: readonly unknown[] };

/** An object that the reference shows under a name of its own. */
export const named = <Fields extends Shape>(id: string, fields: Fields, meta: Meta = {}) =>
  z.object(fields).meta({ id, ...meta } as z.core.GlobalMeta);

/** {@link named} for requests: refuses unknown fields. */
export const namedBody = <Fields extends Shape>(id: string, fields: Fields, meta: Meta = {}) =>
  z.strictObject(fields).meta({ id, ...meta } as z.core.GlobalMeta);

/** A problem of a part of a value. */
export type PathProblem = { readonly path: (string | number)[]; readonly message: string };

/** A refinement that refuses a value with all the problems that a function finds in it. */
export const withProblems =
  <Value>(problemsOf: (value: Value) => readonly PathProblem[]) =>
  (value: Value, context: Pick<z.RefinementCtx, "addIssue">): void => {
    for (const problem of problemsOf(value)) context.addIssue({ code: "custom", ...problem });
  };

/** The fields of a change, of which at least one is required. */
export const changedFields = <Fields extends Shape>(fields: Fields, meta: Meta = {}) =>
  z
    .strictObject(fields)
    .refine((change) => Object.keys(change).length > 0, "at least one field is required")
    .meta({ minProperties: 1, ...meta } as z.core.GlobalMeta);
