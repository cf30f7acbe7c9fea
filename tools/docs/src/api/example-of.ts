import type { createDocument } from "zod-openapi";

export type Schema = { readonly [keyword: string]: unknown };

type Options = {
  /** Returns the schema of a `$ref`. */
  readonly resolve: (reference: string) => Schema;
  /** Includes all optional properties, not only those that have an example. */
  readonly complete: boolean;
};

const formats: Readonly<Record<string, string>> = {
  "date-time": "2030-01-31T09:00:00.000Z",
  uri: "https://example.com/herald",
};

const notification = "ntf_06bq4ghm31tz5d2ns8y7k9w0ac";

/** Examples of text fields by name: a name means the same in every schema. */
const texts: Readonly<Record<string, string>> = {
  batch_id: `${notification}/0/1`,
  created_by: "tok_06bq4ghm31tz5d2ns8y7k9w0ac",
  credential: "hdc_…",
  description: "Order system",
  detail: "the message does not match its contract: `devices` is missing",
  durable: "dispatch-direct-ios",
  error: "the receiver answered 503",
  event_id: `${notification}/completed`,
  host: "api.push.apple.com:443",
  id: `${notification}/completed`,
  last_error: "the receiver answered 503",
  matched: "topic:news",
  message: "DeliverBatchV1",
  name: "Shop",
  paused_detail: "Check key_id and team_id, and that the key was not revoked in Apple's developer account.",
  paused_reason: "InvalidProviderToken",
  provider_reason: "410 Unregistered",
  reason: "unregistered",
  response: "upstream unavailable",
  secret: "whsec_…",
  subject: "push.deliver.v1.direct.ios.prj_06bq4ghm31tz5d2ns8y7k9w0ac",
  time_zone: "Europe/Berlin",
  token: "hpt_…",
  topic: "news",
  type: "io.herald.notification.opened.v1",
  url: "https://example.com/herald",
  user_id: "u_8412",
};

const isNull = ({ type, const: value }: Schema): boolean => type === "null" || value === null;

const objectOf = (schema: Schema, options: Options): Record<string, unknown> => {
  const required = new Set((schema.required as string[] | undefined) ?? []);
  const properties = Object.entries((schema.properties as Record<string, Schema> | undefined) ?? {});
  return Object.fromEntries(
    properties
      .filter(([name, property]) => options.complete || required.has(name) || "examples" in property)
      // Lists are shown as a numbered page, which has no `next`.
      .filter(([name], _, all) => name !== "next" || !all.some(([other]) => other === "pagination"))
      .map(([name, property]) => [name, exampleOf(property, options, name)]),
  );
};

/** An example of a JSON Schema: its own if it has one, otherwise the simplest valid value. */
export const exampleOf = (schema: Schema, options: Options, name = ""): unknown => {
  const { $ref, allOf = [], ...rest } = schema;
  const own: Schema = Object.assign({}, ...(allOf as Schema[]), rest);
  if (Array.isArray(own.examples)) return own.examples[0];
  if (typeof $ref === "string") return exampleOf({ ...options.resolve($ref), ...own }, options, name);
  if ("const" in own) return own.const;
  const values = own.enum ?? own["x-extensible-enum"];
  if (Array.isArray(values)) return values[0];
  const alternatives = (own.anyOf ?? own.oneOf) as Schema[] | undefined;
  if (alternatives) return exampleOf(alternatives.find((one) => !isNull(one)) ?? {}, options, name);
  switch (Array.isArray(own.type) ? own.type[0] : own.type) {
    case "object":
      return objectOf(own, options);
    case "array":
      return [exampleOf(own.items as Schema, options)];
    case "integer":
    case "number":
      return Math.max(Number(own.minimum ?? 0), Math.min(1, Number(own.maximum ?? 1)));
    case "boolean":
      return true;
    case "string":
      return formats[String(own.format)] ?? texts[name] ?? "text";
    default:
      return {};
  }
};

type Document = ReturnType<typeof createDocument>;
export type Media = { schema?: Schema; example?: unknown };
type Content = { content?: Record<string, Media> };
type Operation = { requestBody?: Content; responses?: Record<string, Content> };

/** Adds an example, made from the schema, to every request and response body that has none. Changes the given document. */
export const addExamples = (document: Document): Document => {
  const schemas = (document.components?.schemas ?? {}) as Record<string, Schema>;
  const resolve = (reference: string): Schema => schemas[reference.slice("#/components/schemas/".length)] ?? {};
  const add = ({ content = {} }: Content, complete: boolean) => {
    for (const media of Object.values(content))
      if (media.schema !== undefined) media.example ??= exampleOf(media.schema, { resolve, complete });
  };
  const visit = (paths: Document["paths"], received: boolean) => {
    for (const methods of Object.values(paths ?? {}))
      for (const { requestBody = {}, responses = {} } of Object.values(methods) as Operation[]) {
        add(requestBody, received);
        for (const response of Object.values(responses)) add(response, true);
      }
  };
  visit(document.paths, false);
  // Shows webhook messages with all their fields.
  visit(document.webhooks as Document["paths"], true);
  return document;
};
