import { z } from "zod";
import type { CreateDocumentOptions } from "zod-openapi";

type Context = Parameters<Exclude<CreateDocumentOptions["override"], undefined>>[0];
type Json = Context["jsonSchema"];

const largestInt32 = 2_147_483_647;

/** What generators of clients need to choose a type: unions as `anyOf`, and numbers that do not lose digits. */
const nameTypes = (schema: Json): void => {
  if (Array.isArray(schema.type)) {
    schema.anyOf = schema.type.map((type: Json["type"]) => ({ type }) as Json);
    delete schema.type;
  }
  if (schema.type === "number") schema.format = "double";
  if (schema.type === "integer" && (schema.maximum ?? Number.MAX_SAFE_INTEGER) > largestInt32) schema.format = "int64";
};

const isText = ({ type, anyOf }: Json): boolean =>
  type === "string" || (anyOf?.every((one) => isText(one as Json)) ?? false);

/** Answers may gain fields and values: generated clients refuse what a closed schema does not list. */
const open = (schema: Json): void => {
  if (schema.additionalProperties === false) delete schema.additionalProperties;
  if (schema.anyOf !== undefined && isText(schema)) {
    schema.type = "string";
    schema.examples ??= schema.anyOf[0]?.examples;
    delete schema.anyOf;
  }
  if (schema.enum === undefined || schema.type !== "string") return;
  const { enum: known, description } = schema;
  delete schema.enum;
  const values = `One of ${known.map((value) => `\`${value}\``).join(", ")}; later versions may add others`;
  Object.assign(schema, {
    "x-extensible-enum": known,
    description: description === undefined ? values : `${description}. ${values}`,
  });
};

/** Adds keywords that zod leaves out of JSON Schema, and removes those that only zod understands. */
export const overrideSchema = ({ jsonSchema, zodSchema, io }: Context): void => {
  const { id, examples } = z.globalRegistry.get(zodSchema) ?? {};
  // Zod drops examples of schemas that preprocess their input.
  if (id !== undefined && examples !== undefined) jsonSchema.examples = examples as unknown[];
  if (id === "PageNumber" || id === "PerPage") {
    // Query parameters arrive as text, but callers send numbers.
    const max = id === "PerPage" ? 100 : 1_000_000;
    delete jsonSchema.pattern;
    Object.assign(jsonSchema, { type: "integer", minimum: 1, maximum: max });
  }
  if (jsonSchema.format === "date-time") delete jsonSchema.pattern;
  if (jsonSchema.maximum === Number.MAX_SAFE_INTEGER) delete jsonSchema.maximum;
  if (jsonSchema.minimum === Number.MIN_SAFE_INTEGER) delete jsonSchema.minimum;
  nameTypes(jsonSchema);
  if (io === "output") open(jsonSchema);
};

/** Where a schema has a description of its own, zod repeats keywords beside its `$ref` as they were before {@link overrideSchema}. */
export const withoutRepeats = <Document>(document: Document): Document =>
  JSON.parse(
    JSON.stringify(document, (_, value) => {
      if (typeof value?.$ref !== "string") return value;
      const { $ref, description, examples } = value;
      return { $ref, description, examples };
    }),
  );
