import { type EventContract, events, headerNames, streams } from "@herald/contracts";
import { z } from "zod";
import { version } from "../version.ts";

type Json = Readonly<Record<string, unknown>>;

/** References in place: a schema that stands inside a document has no definitions of its own to refer to. */
const inPlace = (value: unknown, definitions: Json): unknown => {
  if (Array.isArray(value)) return value.map((each) => inPlace(each, definitions));
  if (typeof value !== "object" || value === null) return value;
  const { $ref, ...rest } = value as Json;
  const name = typeof $ref === "string" ? ($ref.split("/").at(-1) ?? "") : "";
  const merged = name in definitions ? { ...(definitions[name] as Json), ...rest } : rest;
  return Object.fromEntries(Object.entries(merged).map(([key, each]) => [key, inPlace(each, definitions)]));
};

/** A JSON Schema as AsyncAPI takes it: draft 7, without what only zod's reader needs. */
const schemaOf = (schema: z.ZodType): Json => {
  const {
    $schema: _,
    definitions = {},
    ...rest
  } = z.toJSONSchema(schema, {
    target: "draft-7",
    io: "output",
    // Ids are custom types whose pattern is in their description.
    unrepresentable: "any",
    override: ({ jsonSchema }) => {
      if (jsonSchema.format === "date-time") delete jsonSchema.pattern;
      if (jsonSchema.maximum === Number.MAX_SAFE_INTEGER) delete jsonSchema.maximum;
      // Consumers keep unknown fields: a later minor version adds some.
      if (jsonSchema.additionalProperties === false) delete jsonSchema.additionalProperties;
    },
  }) as Json;
  return inPlace(rest, definitions as Json) as Json;
};

/** `push.evt.v1.:project_id.device.updated` as `push.evt.v1.{project_id}.device.updated`. */
const addressOf = (pattern: string): string => pattern.replaceAll(/:(\w+)/g, "{$1}");

const text = (description: string, more: Json = {}): Json => ({ type: "string", description, ...more });

/** CloudEvents 1.0 in NATS binary mode: what an event is, beside its data. */
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
    [headerNames.ceId]: text("The id of the fact: an event that comes again has the same, so drop what you have seen"),
    [headerNames.ceSource]: text("`/projects/<project id>`"),
    [headerNames.ceType]: { const: ceType },
    [headerNames.ceTime]: text("When it happened", { format: "date-time" }),
    [headerNames.ceSubject]: text("The id of what it is about"),
    [headerNames.contentType]: { const: "application/json" },
    [headerNames.requestId]: text("The request that caused it"),
    traceparent: text("W3C trace context"),
  },
});

const channelOf = ({ name, pattern }: EventContract): Json => ({
  address: addressOf(pattern),
  messages: { [name]: { $ref: `#/components/messages/${name}` } },
  parameters: { project_id: { $ref: "#/components/parameters/project_id" } },
});

const messageOf = (contract: EventContract): Json => ({
  name: contract.name,
  title: contract.ceType,
  contentType: "application/json",
  headers: headersOf(contract),
  payload: schemaOf(contract.schema),
});

const days = Math.round(streams.PUSH_EVENTS.maxAgeMs / 86_400_000);

const description = `What happened, as CloudEvents 1.0 in NATS binary mode: the payload is the data, the headers are the rest.

All events are in the stream \`PUSH_EVENTS\` for ${days} days, and may be replayed from any time within. An event comes at least once; \`ce-id\` says which one it is. Unknown fields and types come with later versions: keep them. A breaking change is a \`v2\` subject beside \`v1\`.`;

/** The AsyncAPI document of all events: made from the contracts that services publish by. */
export const describeEvents = () => {
  const all = Object.values(events) as unknown as EventContract[];
  const byName = (make: (contract: EventContract) => Json) =>
    Object.fromEntries(all.map((contract) => [contract.name, make(contract)]));
  return {
    asyncapi: "3.0.0",
    info: {
      title: "Herald events",
      version,
      description,
      license: { name: "Apache-2.0", url: "https://www.apache.org/licenses/LICENSE-2.0" },
    },
    defaultContentType: "application/json",
    channels: byName(channelOf),
    operations: byName(({ name, ceType }) => ({
      action: "send",
      title: ceType,
      channel: { $ref: `#/channels/${name}` },
      messages: [{ $ref: `#/channels/${name}/messages/${name}` }],
    })),
    components: {
      messages: byName(messageOf),
      parameters: { project_id: { description: "The project's id: filter and permit by it" } },
    },
  } as const;
};
