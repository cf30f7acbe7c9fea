import { hash } from "node:crypto";
import { pageScript } from "./page-script.ts";

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
  /** What a line of the text is. */
  readonly contentSchema?: JsonSchema;
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
  if (schema.contentSchema !== undefined) return `stream of ${typeOf(schema.contentSchema)}`;
  const type = [schema.type ?? "anything"].flat().join(" or ");
  // Those of numbers are for generators of clients.
  return escapeHtml(schema.format === undefined || type !== "string" ? type : `${type} (${schema.format})`);
};

const range = (name: string, min: number | undefined, max: number | undefined): string[] => {
  if (min === undefined && max === undefined) return [];
  if (max === undefined) return [`${name} at least ${min}`];
  return [min === undefined ? `${name} at most ${max}` : `${name} ${min} to ${max}`];
};

/** A value's limits beside its type. */
const limitsOf = (schema: JsonSchema): string =>
  [
    ...range("characters:", schema.minLength, schema.maxLength),
    ...range("entries:", schema.minItems, schema.maxItems),
    ...range("", schema.minimum, schema.maximum),
    ...(schema.pattern === undefined ? [] : [code(schema.pattern)]),
    ...(schema.examples ?? []).map((example) => `such as ${code(JSON.stringify(example))}`),
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

/** A schema in full: a table of its fields, or its type. */
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

const entities: Record<string, string> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;" };

export const escapeHtml = (text: string): string =>
  text.replaceAll(/[&<>"']/g, (character) => entities[character] ?? "");

/** A description as HTML: only `code` in backticks and blank lines are markup. */
export const prose = (text: string): string =>
  escapeHtml(text)
    .replaceAll(/`([^`]+)`/g, "<code>$1</code>")
    .replaceAll("\n\n", "</p><p>");

const style = `
:root { color-scheme: light dark; --line: #8884; --soft: #8881; --accent: #0a6b5e }
@media (prefers-color-scheme: dark) { :root { --accent: #4cc9b4 } }
* { box-sizing: border-box }
body { margin: 0; font: 16px/1.55 system-ui, sans-serif; display: grid; grid-template-columns: 17rem minmax(0, 1fr) }
nav { position: sticky; top: 0; height: 100vh; overflow: auto; padding: 1.5rem 1rem; border-right: 1px solid var(--line); font-size: .9rem }
nav ul { list-style: none; margin: .25rem 0 1rem; padding: 0 } nav li { padding: .1rem 0 }
main { padding: 2rem; max-width: 62rem }
a { color: var(--accent); text-decoration: none } a:hover { text-decoration: underline }
h1 { margin-top: 0 } h2 { margin-top: 3rem; border-bottom: 1px solid var(--line) } h3 { margin: 2.5rem 0 .25rem }
code { font: .9em ui-monospace, monospace; background: var(--soft); padding: .1em .3em; border-radius: 4px; overflow-wrap: anywhere }
.method { font: 700 .75em ui-monospace, monospace; text-transform: uppercase; color: var(--accent); margin-right: .5em }
table { border-collapse: collapse; width: 100%; margin: .5rem 0 1rem; font-size: .93rem }
th, td { text-align: left; vertical-align: top; padding: .35rem .75rem .35rem 0; border-bottom: 1px solid var(--line) }
th { font-weight: 600 } td:first-child code { overflow-wrap: normal } :target { scroll-margin-top: 1rem; outline: 2px solid var(--accent); outline-offset: 4px }
details { border: 1px solid var(--line); border-radius: 6px; padding: .4rem .8rem; margin: .5rem 0 } summary { cursor: pointer; font-weight: 600 }
pre { background: var(--soft); border-radius: 6px; padding: .75rem 1rem; margin: .5rem 0; overflow: auto; max-height: 30rem; font: .85rem/1.5 ui-monospace, monospace }
pre code { background: none; padding: 0; font: inherit; overflow-wrap: normal }
input, textarea, button { font: inherit; color: inherit; background: var(--soft); border: 1px solid var(--line); border-radius: 6px; padding: .4rem .6rem }
input, textarea { width: 100% } textarea { font: .85rem/1.5 ui-monospace, monospace } button { cursor: pointer; padding: .4rem 1.2rem }
label { display: block; margin: .5rem 0; font-size: .9rem }
:focus-visible { outline: 2px solid var(--accent); outline-offset: 1px }
[hidden], .group:not(:has(> section:not([hidden]), > ul > li:not([hidden]))) { display: none }
.note { opacity: .75; font-size: .9em }
@media (max-width: 50rem) {
  body { display: block } main { padding: 1rem } h1 { font-size: 1.6rem } h3 { font-size: 1rem }
  nav { position: static; height: auto; max-height: 40vh; border: 0; border-bottom: 1px solid var(--line); padding: 1rem }
  thead { display: none } tr { display: block; padding: .4rem 0; border-bottom: 1px solid var(--line) } td { display: block; border: 0; padding: .1rem 0; overflow-wrap: anywhere }
  td:first-child code { overflow-wrap: anywhere }
}
`;

const allow = (text: string): string => `'sha256-${hash("sha256", text, "base64")}'`;

/** A page loads no other file. Its style sheet and script are allowed by their hashes, and the script may call only this gateway. */
export const pagePolicy = `default-src 'none'; style-src ${allow(style)}; script-src ${allow(pageScript)}; connect-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'`;

/** A whole page from parts that are already HTML. */
export const htmlPage = ({ title, nav, main }: { title: string; nav: string; main: string }): string =>
  `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escapeHtml(title)}</title><style>${style}</style></head>
<body><nav><p hidden><input id="search" type="search" placeholder="Search ( / )" aria-label="Search"><output id="found" class="note"></output></p>${nav}</nav><main>${main}</main><script>${pageScript}</script></body></html>
`;

/** Indented JSON, or text as it is. */
export const example = (value: unknown, kind = ""): string => {
  const text = typeof value === "string" ? value : JSON.stringify(value, null, 2);
  return `<pre tabindex="0"><code class="${kind}">${escapeHtml(text)}</code></pre>`;
};

/** A table from rows of cells that are already HTML. */
export const table = (heads: readonly string[], rows: readonly (readonly string[])[]): string => {
  const head = heads.map((cell) => `<th>${escapeHtml(cell)}</th>`).join("");
  const body = rows.map((cells) => `<tr>${cells.map((cell) => `<td>${cell}</td>`).join("")}</tr>`).join("\n");
  return `<table><thead><tr>${head}</tr></thead><tbody>${body}</tbody></table>`;
};
