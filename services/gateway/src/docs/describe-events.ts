import { type EventContract, events, headerNames, streams } from "@herald/contracts";
import { version } from "@herald/kit";
import { z } from "zod";
import { exampleOf, type Schema } from "./example-of.ts";

type Json = Readonly<Record<string, unknown>>;

/** Inlines references, because an embedded schema has no definitions of its own. */
const inPlace = (value: unknown, definitions: Json): unknown => {
  if (Array.isArray(value)) return value.map((each) => inPlace(each, definitions));
  if (typeof value !== "object" || value === null) return value;
  const { $ref, ...rest } = value as Json;
  const name = typeof $ref === "string" ? ($ref.split("/").at(-1) ?? "") : "";
  const merged = name in definitions ? { ...(definitions[name] as Json), ...rest } : rest;
  return Object.fromEntries(Object.entries(merged).map(([key, each]) => [key, inPlace(each, definitions)]));
};

/** A JSON Schema for AsyncAPI: draft 7, without the keywords that only zod understands. */
const schemaOf = (schema: z.ZodType): Json => {
  const {
    $schema: _,
    definitions = {},
    ...rest
  } = z.toJSONSchema(schema, {
    target: "draft-7",
    io: "output",
    // Ids are custom types; their descriptions contain the pattern.
    unrepresentable: "any",
    override: ({ jsonSchema }) => {
      if (jsonSchema.format === "date-time") delete jsonSchema.pattern;
      if (jsonSchema.maximum === Number.MAX_SAFE_INTEGER) delete jsonSchema.maximum;
      // Later minor versions add fields, so the schema must allow them.
      if (jsonSchema.additionalProperties === false) delete jsonSchema.additionalProperties;
    },
  }) as Json;
  return inPlace(rest, definitions as Json) as Json;
};

const text = (description: string, more: Json = {}): Json => ({ type: "string", description, ...more });

/** The headers of an event: CloudEvents 1.0 in NATS binary mode. */
const headersOf = ({ ceType }: EventContract): Json => ({
  type: "object",
  required: [
    headerNames.ceSpecVersion,
    headerNames.ceId,
    headerNames.ceSource,
    headerNames.ceType,
    headerNames.ceTime,
    headerNames.ceSubject,
  ],
  properties: {
    [headerNames.ceSpecVersion]: { const: "1.0" },
    [headerNames.ceId]: text("The event's id. A redelivered event has the same id, so ignore ids that you have seen", {
      examples: ["ntf_06bq4ghm31tz5d2ns8y7k9w0ac/completed"],
    }),
    [headerNames.ceSource]: text("`/projects/<project id>`", {
      examples: ["/projects/prj_06bq4ghm31tz5d2ns8y7k9w0ac"],
    }),
    [headerNames.ceType]: { const: ceType },
    [headerNames.ceTime]: text("When it happened", { format: "date-time" }),
    [headerNames.ceSubject]: text("The id of the device, topic, notification, user or project that it is about", {
      examples: ["ntf_06bq4ghm31tz5d2ns8y7k9w0ac"],
    }),
    [headerNames.contentType]: { const: "application/json" },
    [headerNames.requestId]: text("The id of the request that caused it", {
      examples: ["0198f1c2-7d1e-7cc4-8d5e-2f9f0a4b6c11"],
    }),
    traceparent: text("W3C trace context", { examples: ["00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"] }),
  },
});

const channelOf = ({ name, pattern }: EventContract): Json => ({
  address: pattern.replaceAll(/:(\w+)/g, "{$1}"),
  messages: { [name]: { $ref: `#/components/messages/${name}` } },
  parameters: { project_id: { $ref: "#/components/parameters/project_id" } },
});

const messageOf = (contract: EventContract): Json => {
  const [headers, payload] = [headersOf(contract), schemaOf(contract.schema)];
  // Schemas are inlined, so there is nothing to resolve.
  const options = { resolve: () => ({}), complete: true };
  return {
    name: contract.name,
    title: contract.ceType,
    contentType: "application/json",
    headers,
    payload,
    examples: [
      {
        name: contract.name,
        headers: exampleOf(headers as Schema, options),
        payload: exampleOf(payload as Schema, options),
      },
    ],
  };
};

const days = Math.round(streams.PUSH_EVENTS.maxAgeMs / 86_400_000);

const description = `Everything that happens, as CloudEvents 1.0 in NATS binary mode: the attributes are headers, the data is the payload.

All events are in the stream \`PUSH_EVENTS\` for ${days} days and can be replayed from any time within them. An event is delivered at least once; drop a \`ce-id\` that you have seen. Its type (\`ce-type\`) is the same string in webhooks and in \`GET /events\`, and never changes. Later versions may add types, fields and values of enums: ignore or keep what you do not know. A breaking change is a new type that ends in \`.v2\`.`;

/** The AsyncAPI document of all events, made from the services' event contracts. */
export const describeEvents = () => {
  const all = Object.values(events) as unknown as EventContract[];
  const byName = (make: (contract: EventContract) => Json) =>
    Object.fromEntries(all.map((contract) => [contract.name, make(contract)]));
  return {
    asyncapi: "3.1.0",
    info: {
      title: "Herald events",
      version,
      description,
      license: { name: "Apache-2.0", url: "https://www.apache.org/licenses/LICENSE-2.0" },
    },
    defaultContentType: "application/json",
    servers: {
      nats: {
        host: "{host}:4222",
        protocol: "nats",
        description: "The NATS server of your installation, with JetStream",
        variables: { host: { default: "localhost", description: "Where your NATS server listens" } },
        security: [{ $ref: "#/components/securitySchemes/consumer" }],
      },
    },
    channels: byName(channelOf),
    operations: byName(({ name, ceType }) => ({
      action: "send",
      title: ceType,
      channel: { $ref: `#/channels/${name}` },
      messages: [{ $ref: `#/channels/${name}/messages/${name}` }],
    })),
    components: {
      securitySchemes: {
        consumer: {
          type: "userPassword",
          description:
            "User and password of a consumer, from `npm run consumer -- add`. It can only read its own durable and acknowledge",
        },
      },
      messages: byName(messageOf),
      parameters: { project_id: { description: "The project's id, to filter and to grant access by" } },
    },
  } as const;
};
