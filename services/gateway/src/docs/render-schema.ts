import { escapeHtml, prose, table } from "./html.ts";

/** The part of a JSON Schema that the contracts use. */
export type JsonSchema = {
  readonly $ref?: string;
  readonly type?: string | readonly string[];
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly format?: string;
  readonly pattern?: string;
  readonly description?: string;
  readonly properties?: Readonly<Record<string, JsonSchema>>;
  readonly required?: readonly string[];
  readonly items?: JsonSchema;
  readonly additionalProperties?: JsonSchema | boolean;
  readonly anyOf?: readonly JsonSchema[];
  readonly oneOf?: readonly JsonSchema[];
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly examples?: readonly unknown[];
};

const code = (text: string): string => `<code>${escapeHtml(text)}</code>`;

/** The last part of a reference: the component's name. */
export const nameOf = (reference: string): string => reference.split("/").at(-1) ?? reference;

/** A schema's type in a few words, with links to the named ones. */
export const typeOf = (schema: JsonSchema): string => {
  if (schema.$ref !== undefined) {
    const name = escapeHtml(nameOf(schema.$ref));
    return `<a href="#schema-${name}">${name}</a>`;
  }
  const options = schema.anyOf ?? schema.oneOf;
  if (options !== undefined) return options.map(typeOf).join(" or ");
  if (schema.const !== undefined) return code(JSON.stringify(schema.const));
  if (schema.enum !== undefined) return schema.enum.map((value) => code(String(value))).join(", ");
  if (schema.type === "array") return `list of ${schema.items === undefined ? "anything" : typeOf(schema.items)}`;
  const type = [schema.type ?? "anything"].flat().join(" or ");
  return escapeHtml(schema.format === undefined ? type : `${type} (${schema.format})`);
};

const range = (name: string, min: number | undefined, max: number | undefined): string[] => {
  if (min === undefined && max === undefined) return [];
  if (max === undefined) return [`${name} at least ${min}`];
  return [min === undefined ? `${name} at most ${max}` : `${name} ${min} to ${max}`];
};

/** What a value must keep to beside its type. */
const limitsOf = (schema: JsonSchema): string =>
  [
    ...range("characters:", schema.minLength, schema.maxLength),
    ...range("entries:", schema.minItems, schema.maxItems),
    ...range("", schema.minimum, schema.maximum),
    ...(schema.pattern === undefined ? [] : [code(schema.pattern)]),
    ...(schema.examples === undefined
      ? []
      : schema.examples.map((example) => `such as ${code(JSON.stringify(example))}`)),
  ].join("; ");

type Row = readonly [name: string, type: string, about: string];

const rowsOf = (schema: JsonSchema, path: string): Row[] => {
  const required = new Set(schema.required);
  return Object.entries(schema.properties ?? {}).flatMap(([name, property]): Row[] => {
    const at = path === "" ? name : `${path}.${name}`;
    const about = [
      required.has(name) ? "<strong>required</strong>" : "",
      property.description === undefined ? "" : prose(property.description),
      limitsOf(property),
    ];
    const row: Row = [code(at), typeOf(property), about.filter((part) => part !== "").join("; ")];
    const inner = property.properties ? property : property.items?.properties ? property.items : undefined;
    return inner === undefined ? [row] : [row, ...rowsOf(inner, property.items ? `${at}[]` : at)];
  });
};

/** A schema in full: its fields as a table, or what kind of value it is. */
export const renderSchema = (schema: JsonSchema): string => {
  const options = schema.anyOf ?? schema.oneOf;
  if (options !== undefined && schema.properties === undefined) {
    return options.map(renderSchema).join('<p class="note">or</p>');
  }
  const rows = rowsOf(schema, "");
  if (rows.length > 0) return table(["field", "type", ""], rows);
  const about = [typeOf(schema), schema.description === undefined ? "" : prose(schema.description), limitsOf(schema)];
  return `<p>${about.filter((part) => part !== "").join("; ")}</p>`;
};
