import { batchedTypes, type EventContract, eventBatchType, events, headerNames, streams } from "@herald/contracts";
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

/** The attributes of CloudEvents 1.0. */
const attributesOf = ({ ceType }: EventContract) => ({
  specversion: { const: "1.0" },
  id: text("The event's id. A redelivered event has the same id, so ignore ids that you have seen", {
    examples: ["ntf_06bq4ghm31tz5d2ns8y7k9w0ac/completed"],
  }),
  source: text("`/projects/<project id>`", { examples: ["/projects/prj_06bq4ghm31tz5d2ns8y7k9w0ac"] }),
  type: { const: ceType },
  time: text("When it happened", { format: "date-time" }),
  subject: text("The id of the device, topic, notification, user or project that it is about", {
    examples: ["ntf_06bq4ghm31tz5d2ns8y7k9w0ac"],
  }),
});

const requestId = text("The id of the request that caused it", { examples: ["0198f1c2-7d1e-7cc4-8d5e-2f9f0a4b6c11"] });
const traceparent = text("W3C trace context", {
  examples: ["00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"],
});

/** The headers of an event alone: NATS binary mode. */
const headersOf = (contract: EventContract): Json => {
  const attributes = Object.entries(attributesOf(contract)).map(([name, value]) => [`ce-${name}`, value] as const);
  return {
    type: "object",
    required: attributes.map(([name]) => name),
    properties: {
      ...Object.fromEntries(attributes),
      [headerNames.contentType]: { const: "application/json" },
      [headerNames.requestId]: requestId,
      traceparent,
    },
  };
};

/** Several events in one message: the JSON batch format. */
const batchOf = (contract: EventContract): Json => {
  const attributes = attributesOf(contract);
  return {
    type: "array",
    items: {
      type: "object",
      required: [...Object.keys(attributes), "data"],
      properties: { ...attributes, requestid: requestId, traceparent, data: schemaOf(contract.schema) },
    },
  };
};

const batchName = ({ name }: EventContract): string => `${name}Batch`;

/** The names of an event's messages. */
const messageNames = (contract: EventContract): string[] => [
  contract.name,
  ...(batchedTypes.has(contract.ceType) ? [batchName(contract)] : []),
];

const channelOf = (contract: EventContract): Json => ({
  address: contract.pattern.replaceAll(/:(\w+)/g, "{$1}"),
  messages: Object.fromEntries(messageNames(contract).map((name) => [name, { $ref: `#/components/messages/${name}` }])),
  parameters: { project_id: { $ref: "#/components/parameters/project_id" } },
});

// Schemas are inlined, so there is nothing to resolve.
const exampleOptions = { resolve: () => ({}), complete: true };

const message = (name: string, title: string, contentType: string, headers: Json, payload: Json): Json => ({
  name,
  title,
  contentType,
  headers,
  payload,
  examples: [
    {
      name,
      headers: exampleOf(headers as Schema, exampleOptions),
      payload: exampleOf(payload as Schema, exampleOptions),
    },
  ],
});

const messageOf = (contract: EventContract): Json =>
  message(contract.name, contract.ceType, "application/json", headersOf(contract), schemaOf(contract.schema));

const batchMessageOf = (contract: EventContract): Json => {
  const headers = { type: "object", properties: { [headerNames.contentType]: { const: eventBatchType } } };
  return message(batchName(contract), `${contract.ceType}, several`, eventBatchType, headers, batchOf(contract));
};

const days = Math.round(streams.PUSH_EVENTS.maxAgeMs / 86_400_000);

const description = `Everything that happens, as CloudEvents 1.0. An event alone is in NATS binary mode: the attributes are headers, the data is the payload. Events of one project, one type and the same 50 ms share a message, if their type allows it: a JSON array of up to 100 objects with attributes and data, with the header \`content-type: ${eventBatchType}\`.

All events are in the stream \`PUSH_EVENTS\` for ${days} days and can be replayed from any time within them. An event is delivered at least once; drop an id that you have seen. Its type (\`ce-type\`) is the same string in webhooks and in \`GET /events\`, and never changes. Later versions may add types, fields and values of enums: ignore or keep what you do not know. A breaking change is a new type that ends in \`.v2\`.`;

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
    operations: byName((contract) => ({
      action: "send",
      title: contract.ceType,
      channel: { $ref: `#/channels/${contract.name}` },
      messages: messageNames(contract).map((name) => ({ $ref: `#/channels/${contract.name}/messages/${name}` })),
    })),
    components: {
      securitySchemes: {
        consumer: {
          type: "userPassword",
          description:
            "User and password of a consumer, from `npm run consumer -- add`. It can only read its own durable and acknowledge",
        },
      },
      messages: {
        ...byName(messageOf),
        ...Object.fromEntries(
          all.filter(({ ceType }) => batchedTypes.has(ceType)).map((one) => [batchName(one), batchMessageOf(one)]),
        ),
      },
      parameters: { project_id: { description: "The project's id, to filter and to grant access by" } },
    },
  } as const;
};
