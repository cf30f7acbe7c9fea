import { variableInfo } from "@herald/kit";
import { isMap, isSeq, parseDocument, type YAMLMap } from "yaml";
import { meaningsIn, sharedSource } from "./configuration-page.ts";
import { type Part, read, schemas } from "./deployed-parts.ts";

/** The schema and the reference of the chart's values: types are those of the defaults, descriptions the comments in values.yaml. */

type Schema = { readonly description?: string; readonly [keyword: string]: unknown };

/** Set by the chart: the same for all parts, or needed in another place too, as a port is by a probe. */
const ownVariables =
  /^HERALD_(NATS_.*|MONGO_URL|DATABASE_PREFIX|HOST|PORT|METRICS_PORT|GATEWAY_ADMIN_PORT|GATEWAY_ADMIN_HOST)$|^OTEL_|^NO_PROXY$/;

/** A URL may contain a password, and so counts as a secret. These are known to every browser that signs in, and have a schema without one. */
const publicUrls = /^HERALD_GATEWAY_OIDC_(ISSUER|URL)$/;
const urlWithoutPassword: Schema = { type: "string", pattern: "^https?://[^@]+$" };

/** What a variable accepts, in terms of JSON schema. Sizes and durations are checked by the service that reads them. */
const acceptedBy = (accepts: string): Schema => {
  const [, min, max] = /^a whole number from (\d+) to (\d+)/.exec(accepts) ?? [];
  if (min !== undefined) return { type: "integer", minimum: Number(min), maximum: Number(max) };
  const [, choices] = /^one of (.+)$/.exec(accepts) ?? [];
  if (choices !== undefined) return { enum: choices.split(", ") };
  return { type: accepts === "true or false" ? "boolean" : "string" };
};

const closed = (properties: Readonly<Record<string, Schema>>, more: Schema = {}): Schema => ({
  type: "object",
  additionalProperties: false,
  ...more,
  properties,
});

const configOf = (part: Part): Schema => {
  const meanings = new Map([...meaningsIn(sharedSource), ...meaningsIn(`services/${part}/src/config.ts`)]);
  const variables = Object.entries(schemas[part].shape).flatMap(([name, type]) => {
    const info = variableInfo(type);
    if (info === undefined || ownVariables.test(name)) return [];
    if (info.secret && !publicUrls.test(name)) return [];
    const schema = info.secret ? urlWithoutPassword : acceptedBy(info.accepts);
    return [[name, { description: meanings.get(name), ...schema }] as const];
  });
  return closed(Object.fromEntries(variables));
};

const strings: Schema = { type: "array", items: { type: "string", minLength: 1 } };
const objects: Schema = { type: "array", items: { type: "object" } };
const texts: Schema = { type: "object", additionalProperties: { type: "string" } };
/** Kubernetes defines the fields, and its API server checks them. */
const anyFields: Schema = { type: "object" };
const secretName: Schema = { type: "string", pattern: "^[a-z0-9]([-.a-z0-9]*[a-z0-9])?$" };

/** What a default cannot say of itself. The first pattern that matches the path decides. */
const particulars: readonly (readonly [RegExp, Schema])[] = [
  [/^images\.pullPolicy$/, { enum: ["IfNotPresent", "Always", "Never"] }],
  [/^images\.repository$/, { type: "string", pattern: "^[^/@]+(/[^/@]+)*$" }],
  [/\.digest$/, { type: "string", pattern: "^(sha256:[0-9a-f]{64})?$" }],
  [/^proxy\.url$/, { type: "string", pattern: "^(https?://[^@]+)?$" }],
  [/^proxy\.secret$/, { type: "string", pattern: "^([a-z0-9]([-.a-z0-9]*[a-z0-9])?)?$" }],
  [/^secrets\.|\.secret$/, secretName],
  [/^nats\.url$/, { type: "string", pattern: "^(nats|tls|ws|wss)://[^@]+$" }],
  [/^nats\.replicas$/, { enum: [1, 3] }],
  [/^nats\.storage$/, { type: "string", pattern: "^[0-9]+(\\.[0-9]+)?(B|KiB|MiB|GiB|kB|MB|GB)$" }],
  [/^nats\.monitoring$/, { type: "string", pattern: "^([^:/]+:[0-9]+)?$" }],
  [/[pP]ort$/, { type: "integer", minimum: 1, maximum: 65_535 }],
  [
    /^env$/,
    closed({}, { patternProperties: { "^(OTEL|NODE)_[A-Z0-9_]+$": { type: ["string", "number", "boolean"] } } }),
  ],
  [/\.(annotations|nodeSelector|labels)$/, texts],
  [/\.(resources|affinity)$/, anyFields],
  [/^(images\.pullSecrets|ingress\.hosts|httpRoute\.hostnames)$/, strings],
  [/^networkPolicies\.(?!enabled)|\.(tls|parentRefs|tolerations|volumes|volumeMounts)$/, objects],
];

const typeOf = (path: string, value: unknown): Schema => {
  const [, part] = /^(\w+)\.config$/.exec(path) ?? [];
  if (part !== undefined) return configOf(part as Part);
  const [, particular] = particulars.find(([pattern]) => pattern.test(path)) ?? [];
  if (particular !== undefined) return particular;
  if (typeof value === "number") return { type: "integer", minimum: 1 };
  if (typeof value === "string" || typeof value === "boolean") return { type: typeof value };
  throw new Error(`${path}: say in chart-values.ts what it accepts`);
};

type Value = { readonly path: string; readonly key: string; readonly description: string | undefined } & (
  | { readonly values: readonly Value[] }
  | { readonly standard: unknown; readonly schema: Schema }
);

const oneLine = (comment: string | null | undefined) =>
  comment
    ?.split("\n\n")
    .at(-1)
    ?.split("\n")
    .map((line) => line.trim())
    .join(" ");

const valuesIn = (map: YAMLMap, above = ""): Value[] =>
  map.items.map(({ key: node, value }, index) => {
    const key = String(node);
    const path = `${above}${key}`;
    // The parser gives the comment above a map's first key to the map.
    const comment = (node as { commentBefore?: string }).commentBefore ?? (index === 0 ? map.commentBefore : undefined);
    const named = { path, key, description: oneLine(comment) };
    const isLeaf = particulars.some(([pattern]) => pattern.test(path)) || path.endsWith(".config");
    if (isMap(value) && !isLeaf) return { ...named, values: valuesIn(value, `${path}.`) };
    const standard = isMap(value) || isSeq(value) ? value.toJSON() : (value as { value: unknown }).value;
    return { ...named, standard, schema: typeOf(path, standard) };
  });

const allValues = (): Value[] => {
  const { contents } = parseDocument(read("infra/helm/herald/values.yaml"));
  if (!isMap(contents)) throw new Error("values.yaml is not a map");
  return valuesIn(contents as YAMLMap);
};

const schemaOf = (value: Value): Schema => ({
  ...(value.description === undefined ? {} : { description: value.description }),
  ...("values" in value ? closed(propertiesOf(value.values)) : value.schema),
});
const propertiesOf = (values: readonly Value[]) =>
  Object.fromEntries(values.map((value) => [value.key, schemaOf(value)]));

/** values.schema.json. Helm refuses a value that it does not know, and names its path. */
export const valuesSchema = (): string => {
  // Helm itself adds `global` when the chart is part of another.
  const properties = { ...propertiesOf(allValues()), global: { type: "object" } };
  return `${JSON.stringify({ $schema: "http://json-schema.org/draft-07/schema#", ...closed(properties) }, null, 2)}\n`;
};

const cell = (text: string): string => text.replaceAll("|", "\\|").replaceAll("<", "&lt;");
const rowsOf = (value: Value): string[] =>
  "values" in value
    ? [
        ...(value.description === undefined ? [] : [`| \`${value.path}\` | | ${cell(value.description)} |`]),
        ...value.values.flatMap(rowsOf),
      ]
    : [`| \`${value.path}\` | \`${JSON.stringify(value.standard)}\` | ${cell(value.description ?? "")} |`];

/** docs/reference/chart-values.md. */
export const valuesPage = (): string =>
  [
    "# Values of the chart",
    "",
    "Written by `npm run docs` from [values.yaml](../../infra/helm/herald/values.yaml); a test compares them.",
    "[Deploy](../how-to/deploy.md#on-kubernetes) shows how to set them. Helm refuses a value that is not listed here, or has another type,",
    "and names its path. Variables under `config` are those of [configuration](configuration.md) that hold no secret.",
    "",
    "| value | default | meaning |",
    "| --- | --- | --- |",
    ...allValues().flatMap(rowsOf),
    "",
  ].join("\n");
