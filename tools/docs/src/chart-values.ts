import { variableInfo } from "@herald/kit";
import { isMap, isSeq, parseDocument, type YAMLMap } from "yaml";
import { meaningsOf } from "./configuration-page.ts";
import { type DeployedPart, parts, read, schemas } from "./deployed-parts.ts";

/** The schema and the reference of the chart's values: types are those of the defaults, descriptions the comments in values.yaml. */

type Schema = { readonly description?: string; readonly [keyword: string]: unknown };

/** Set by the chart: the same for all parts, or needed in another place too, as a port is by a probe. */
const ownVariables =
  /^HERALD_(NATS_.*|MONGO_URL|DATABASE_PREFIX|HOST|PORT|METRICS_HOST|METRICS_PORT|GATEWAY_ADMIN_PORT|GATEWAY_ADMIN_HOST)$|^OTEL_|^NO_PROXY$/;

/** A URL may contain a password, and so counts as a secret. These are known to every browser that signs in, and have a schema without one. */
const publicUrls = /^HERALD_GATEWAY_OIDC_(ISSUER|URL)$/;
const urlWithoutPassword: Schema = { type: "string", pattern: "^https?://[^@]+$" };

/** What a service refines in a way that its words do not say. */
const refined: Readonly<Record<string, { accepts: string; pattern: string }>> = {
  HERALD_GATEWAY_OIDC_ISSUER: {
    accepts: "a URL that begins with https://, on this machine also http://",
    pattern: "^(https://[^\\s]+|http://(localhost|127\\.0\\.0\\.1|\\[::1\\])([:/?#][^\\s]*)?)$",
  },
  HERALD_GATEWAY_OIDC_URL: {
    accepts: "an origin such as https://herald.example.com, without a path or a slash at its end",
    pattern: "^https?://[^/?#\\sA-Z]+$",
  },
  HERALD_GATEWAY_OIDC_SCOPES: {
    accepts: "scopes with blanks between them, openid among them",
    pattern: "(^| )openid( |$)",
  },
};

/** In milliseconds, and in bytes. */
const units: Readonly<Record<string, Readonly<Record<string, number>>>> = {
  duration: { "": 1, ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 },
  size: { "": 1, b: 1, kb: 1e3, mb: 1e6, gb: 1e9, kib: 2 ** 10, mib: 2 ** 20, gib: 2 ** 30 },
};

/** The kind and the range of a duration or a size, from the words of its schema. */
const rangeOf = (accepts: string) => {
  const words = /^a (duration|size)(?: of at least (\w+))?(?: (?:and|of) at most (\w+))?:/.exec(accepts);
  if (words === null) return undefined;
  const [, kind = "", min, max] = words;
  const inUnits = (text: string) => {
    const [, count, unit = ""] = /^(\d+)(\w*)$/.exec(text) ?? [];
    return Number(count) * (units[kind]?.[unit.toLowerCase()] ?? Number.NaN);
  };
  return { accepts, kind, ...(min && { min: inUnits(min) }), ...(max && { max: inUnits(max) }) };
};

/** What a variable accepts, in terms of JSON schema. Texts of a form have it in `chartVariables`, because Helm would show only the pattern. */
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

const configOf = (part: DeployedPart): Schema => {
  const meanings = meaningsOf(part);
  const variables = Object.entries(schemas[part].shape).flatMap(([name, type]) => {
    const info = variableInfo(type);
    if (info === undefined || ownVariables.test(name)) return [];
    if (info.secret && !publicUrls.test(name)) return [];
    const schema = info.secret ? urlWithoutPassword : acceptedBy(info.accepts);
    return [[name, { description: meanings.get(name), ...schema }] as const];
  });
  return closed(Object.fromEntries(variables));
};

/** files/variables.json: each part's variables, with the texts that it accepts, from its own schema, and the words for any other. */
export const chartVariables = (): string => {
  const of = (part: DeployedPart) =>
    Object.entries(schemas[part].shape).map(([name, type]) => {
      const { accepts = "", secret = false } = variableInfo(type) ?? {};
      const isSecret = secret && name.startsWith("HERALD_") && !publicUrls.test(name);
      const facts = { ...rangeOf(accepts), ...refined[name], ...(secret && { file: true }) };
      return [name, { ...facts, ...(isSecret && { secret: true }) }] as const;
    });
  const known = Object.fromEntries(parts.map((part) => [part, Object.fromEntries(of(part))]));
  return `${JSON.stringify({ units, parts: known }, null, 2)}\n`;
};

/** The largest number that Kubernetes counts to. */
const maxReplicas = 2_147_483_647;
const natsUrl = "(nats|tls|ws|wss)://[^@,\\s]+";
const dnsName = "[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*";
const nameOf = (pattern = dnsName, maxLength = 253): Schema => ({ type: "string", pattern: `^${pattern}$`, maxLength });
const objectName = nameOf();
const labelName = nameOf("[a-z0-9]([-a-z0-9]*[a-z0-9])?", 63);
const hostName = nameOf(`(\\*\\.)?${dnsName}`);
const orEmpty = (schema: Schema): Schema => ({ ...schema, pattern: `^(${String(schema.pattern).slice(1, -1)})?$` });
const listOf = (items: Schema): Schema => ({ type: "array", items });
/** Keys are names of labels or annotations. Helm names a wrong path for `propertyNames`. */
const mapOf = (value: Schema): Schema =>
  closed({}, { patternProperties: { [`^(${dnsName}/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$`]: value } });
const labelValue: Schema = { type: "string", pattern: "^([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?$" };
/** Kubernetes defines the fields, and its API server checks them. */
const anyFields: Schema = { type: "object" };
const quantity: Schema = {
  type: ["string", "number"],
  minimum: 0,
  pattern: "^[0-9]+(\\.[0-9]+)?([numkMGTPE]|[KMGTPE]i)?$",
};
const quantities = mapOf(quantity);
const portNumber: Schema = { type: "integer", minimum: 1, maximum: 65_535 };
const peers = listOf(
  closed(
    {
      podSelector: anyFields,
      namespaceSelector: anyFields,
      ipBlock: closed(
        { cidr: { type: "string", pattern: "^[0-9a-fA-F.:]+/[0-9]{1,3}$" }, except: listOf({ type: "string" }) },
        { required: ["cidr"] },
      ),
    },
    {
      oneOf: [
        { required: ["ipBlock"], maxProperties: 1 },
        { not: { required: ["ipBlock"] }, minProperties: 1 },
      ],
    },
  ),
);
const portsOfRule = listOf(
  closed({
    port: { anyOf: [portNumber, { type: "string", pattern: "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", maxLength: 15 }] },
    protocol: { enum: ["TCP", "UDP", "SCTP"] },
    endPort: portNumber,
  }),
);
/** As in a container. Which names a part knows is checked by the chart's own template, which says it in a sentence. */
const variables = listOf(
  closed(
    {
      name: { type: "string", pattern: "^[A-Za-z_][A-Za-z0-9_]*$" },
      value: { type: "string" },
      valueFrom: closed(
        Object.fromEntries(
          ["secretKeyRef", "configMapKeyRef", "fieldRef", "resourceFieldRef"].map((name) => [name, anyFields]),
        ),
        { minProperties: 1, maxProperties: 1 },
      ),
    },
    { required: ["name"] },
  ),
);

/** What a default cannot say of itself. The first pattern that matches the path decides. */
const particulars: readonly (readonly [RegExp, Schema])[] = [
  [/^images\.pullPolicy$/, { enum: ["IfNotPresent", "Always", "Never"] }],
  [/^images\.repository$/, nameOf("[a-z0-9]([-a-z0-9._]*[a-z0-9])?(:[0-9]{1,5})?(/[a-z0-9]+([-._]+[a-z0-9]+)*)*")],
  [/^images\.tag$/, { type: "string", pattern: "^([A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?$" }],
  [/\.image$/, { type: "string", pattern: "^[a-z0-9][^\\s@]*(@sha256:[0-9a-f]{64})?$" }],
  [/\.digest$/, { type: "string", pattern: "^(sha256:[0-9a-f]{64})?$" }],
  [/^proxy\.url$/, { type: "string", pattern: "^(https?://[^@/\\s]+/?)?$" }],
  [/^proxy\.secret$/, orEmpty(objectName)],
  [/^secrets\.|\.secret$/, objectName],
  [/^nats\.url$/, { type: "string", pattern: `^${natsUrl}( *, *${natsUrl})*$` }],
  [/^nats\.replicas$/, { enum: [1, 3] }],
  [/^nats\.storage$/, { type: "string", pattern: "^[0-9]+(\\.[0-9]+)?(B|KiB|MiB|GiB|kB|MB|GB)$" }],
  [/^nats\.monitoring$/, { type: "string", pattern: "^([^:/]+:[0-9]{1,5})?$" }],
  [/^database\.prefix$/, { type: "string", pattern: "^[A-Za-z0-9_-]{1,50}$" }],
  [/[pP]ort$/, portNumber],
  [/\.scaling\.maxReplicas$/, { type: "integer", minimum: 2, maximum: maxReplicas }],
  [
    /^env$/,
    closed({}, { patternProperties: { "^(OTEL|NODE)_[A-Z0-9_]+$": { type: ["string", "number", "boolean"] } } }),
  ],
  [/(^|\.)extraEnv$/, variables],
  [/\.annotations$/, mapOf({ type: "string" })],
  [/\.(nodeSelector|labels)$/, mapOf(labelValue)],
  [/\.resources$/, closed({ requests: quantities, limits: quantities, claims: { type: "array" } })],
  [/\.affinity$/, closed({ nodeAffinity: anyFields, podAffinity: anyFields, podAntiAffinity: anyFields })],
  [/\.priorityClassName$|^ingress\.className$/, orEmpty(objectName)],
  [/^images\.pullSecrets$/, listOf(objectName)],
  [/^(ingress\.hosts)$/, listOf(hostName)],
  [/^httpRoute\.hostnames$/, { ...listOf(hostName), maxItems: 16 }],
  [/^ingress\.tls$/, listOf(closed({ secretName: objectName, hosts: listOf(hostName) }))],
  [
    /\.parentRefs$/,
    {
      ...listOf(
        closed(
          {
            ...{ group: { type: "string" }, kind: { type: "string" }, name: objectName, namespace: labelName },
            ...{ sectionName: objectName, port: portNumber },
          },
          { required: ["name"] },
        ),
      ),
      maxItems: 32,
    },
  ],
  [
    /\.tolerations$/,
    listOf(
      closed({
        ...{ key: { type: "string" }, value: { type: "string" }, tolerationSeconds: { type: "integer" } },
        operator: { enum: ["Exists", "Equal", "Lt", "Gt"] },
        effect: { enum: ["NoSchedule", "PreferNoSchedule", "NoExecute"] },
      }),
    ),
  ],
  [
    /\.volumes$/,
    listOf({ type: "object", required: ["name"], properties: { name: labelName }, minProperties: 2, maxProperties: 2 }),
  ],
  [
    /\.volumeMounts$/,
    listOf({
      ...{ type: "object", required: ["name", "mountPath"] },
      properties: { name: labelName, mountPath: { type: "string", pattern: "^/[^:]+$" } },
    }),
  ],
  [/^networkPolicies\.extraEgress$/, listOf(closed({ ports: portsOfRule, to: peers }))],
  [/^networkPolicies\.(?!enabled)/, peers],
];

const typeOf = (path: string, value: unknown): Schema => {
  const [, part] = /^(\w+)\.config$/.exec(path) ?? [];
  if (part !== undefined) return configOf(part as DeployedPart);
  const [, particular] = particulars.find(([pattern]) => pattern.test(path)) ?? [];
  if (particular !== undefined) return particular;
  if (typeof value === "number") return { type: "integer", minimum: 1, maximum: maxReplicas };
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
const part = /\b(bus|gateway|registry|dispatch|analytics|bootstrap)\b/;

type ValueRow = { readonly path: string; readonly cells: string };

const rowsOf = (value: Value): ValueRow[] =>
  "values" in value
    ? [
        ...(value.description === undefined ? [] : [{ path: value.path, cells: `| ${cell(value.description)}` }]),
        ...value.values.flatMap(rowsOf),
      ]
    : [{ path: value.path, cells: `\`${JSON.stringify(value.standard)}\` | ${cell(value.description ?? "")}` }];

/** Values that all parts have alike share a row: `{gateway,registry}.volumes`. */
const tableOf = (rows: readonly ValueRow[]): string[] =>
  [...Map.groupBy(rows, ({ path, cells }) => path.replace(part, "*") + cells).values()].map((alike) => {
    const [{ path, cells }] = alike as [ValueRow];
    const parts = alike.map((row) => part.exec(row.path)?.[0]).join();
    return `| \`${alike.length > 1 ? path.replace(part, `{${parts}}`) : path}\` | ${cells} |`;
  });

/** docs/reference/chart-values.md. */
export const valuesPage = (): string =>
  [
    "# Values of the chart",
    "",
    "Every value of the chart; [deploy](../how-to/deploy.md#on-kubernetes) shows how to set them. Helm refuses any other, or another type, and",
    "names its path. Written by `npm run docs` from [values.yaml](../../infra/helm/herald/values.yaml); a test compares them.",
    "",
    "| value | default | meaning |",
    "| --- | --- | --- |",
    ...tableOf(allValues().flatMap(rowsOf)),
    "",
  ].join("\n");
