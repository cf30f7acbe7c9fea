import { z } from "zod";

type Schema = {
  readonly type?: string;
  readonly examples?: readonly unknown[];
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly anyOf?: readonly Schema[];
  readonly allOf?: readonly Schema[];
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly items?: Schema;
  readonly format?: string;
  readonly minimum?: number;
  readonly $ref?: string;
  readonly $defs?: Readonly<Record<string, Schema>>;
};

/** A value that a schema accepts, or almost accepts, with all its fields. */
export function sampleOf(schema: z.ZodType): unknown {
  const root = z.toJSONSchema(schema, { io: "input", unrepresentable: "any" }) as Schema;
  const sample = (one: Schema): unknown => {
    if (one.$ref !== undefined) return sample(root.$defs?.[one.$ref.split("/").at(-1) ?? ""] ?? {});
    if (one.const !== undefined) return one.const;
    if (one.examples !== undefined) return one.examples[0];
    if (one.enum !== undefined) return one.enum[0];
    const inner = one.anyOf?.[0] ?? one.allOf?.[0];
    if (inner !== undefined) return sample(inner);
    switch (one.type) {
      case "object":
        return Object.fromEntries(Object.entries(one.properties ?? {}).map(([name, field]) => [name, sample(field)]));
      case "array":
        return [sample(one.items ?? {})];
      case "integer":
      case "number":
        return Math.max(1, one.minimum ?? 1);
      case "boolean":
        return true;
      case "string":
        return one.format === "date-time" ? "2030-01-01T00:00:00.000Z" : "sample";
      default:
        return {};
    }
  };
  return sample(root);
}
