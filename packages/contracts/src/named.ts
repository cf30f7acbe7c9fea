import { z } from "zod";

type Shape = z.core.$ZodLooseShape;
type Meta = { readonly description?: string; readonly examples?: readonly unknown[] };

/** An object that the reference shows under a name of its own. */
export const named = <Fields extends Shape>(id: string, fields: Fields, meta: Meta = {}) =>
  z.object(fields).meta({ id, ...meta } as z.core.GlobalMeta);

/** {@link named} for requests: refuses unknown fields. */
export const namedBody = <Fields extends Shape>(id: string, fields: Fields, meta: Meta = {}) =>
  z.strictObject(fields).meta({ id, ...meta } as z.core.GlobalMeta);
