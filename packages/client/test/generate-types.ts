import { execFileSync } from "node:child_process";
import { join } from "node:path";
import * as contracts from "@herald/contracts";
import { z } from "zod";

type Json = {
  readonly $ref?: string;
  readonly $defs?: Record<string, Json>;
  readonly const?: unknown;
  readonly enum?: readonly unknown[];
  readonly anyOf?: readonly Json[];
  readonly oneOf?: readonly Json[];
  readonly allOf?: readonly Json[];
  readonly type?: string | readonly string[];
  readonly items?: Json;
  readonly properties?: Record<string, Json>;
  readonly required?: readonly string[];
  readonly additionalProperties?: boolean | Json;
  readonly description?: string;
  readonly format?: string;
};

/** Schemas of answers. */
const answers = [
  contracts.Device,
  contracts.PutDeviceResult,
  contracts.Import,
  contracts.LineError,
  contracts.Recipients,
  contracts.ExportedDevice,
  contracts.ExportedDelivery,
  contracts.ExportedOpen,
  contracts.ExportedReceipt,
  contracts.Preferences,
  contracts.User,
  contracts.UserSummary,
  contracts.UserErasure,
  contracts.Topic,
  contracts.SubscriptionResult,
  contracts.Template,
  contracts.TemplateSummary,
  contracts.PublishedVersion,
  contracts.TemplatePreview,
  contracts.Notification,
  contracts.SentNotification,
  contracts.Delivery,
  contracts.DeviceNotification,
  contracts.DeliveryTrace,
  contracts.DryRun,
  contracts.Stats,
  contracts.Pagination,
  contracts.Webhook,
  contracts.WebhookMessage,
  contracts.WebhookMessageDetail,
  contracts.Recovered,
  contracts.EventMessage,
  contracts.Project,
  contracts.Installation,
  contracts.ProjectLimit,
  contracts.DeclaredKind,
  contracts.ProjectToken,
  contracts.IdentityKey,
  contracts.ProviderView,
  contracts.Activity,
  contracts.ActivityVersion,
  contracts.DeviceActivity,
  contracts.TestedPush,
  contracts.VapidKey,
  contracts.RetiredVapidKey,
  contracts.Operator,
  contracts.Session,
  contracts.CurrentSession,
  contracts.SignInCode,
  contracts.SignedOut,
  contracts.AuditRow,
  contracts.AuditCheck,
  contracts.DeadLetter,
  contracts.Replay,
  contracts.SystemStatus,
];

/** Devices send a `user_token`; backends send `user_id`. */
const { user_token: _, ...deviceChange } = contracts.ChangeDevice.shape.device.shape;

/** Schemas of request bodies, by the client's names. */
const inputs = {
  NewNotification: contracts.NotificationContent.omit({ activity: true }).extend({
    ...contracts.templateFields,
    ...contracts.targetFields,
    push_type: contracts.SendPushTypeField,
  }),
  NotificationChange: contracts.ChangeNotification.shape.notification,
  NewActivity: contracts.PutActivity.shape.activity,
  ActivityState: contracts.PatchActivity.shape.activity,
  ActivityEnd: contracts.EndActivity.shape.activity,
  NewDevice: contracts.RegisterDevice.shape.device,
  PutDevice: contracts.PutDevice,
  NewImport: contracts.CreateImport.shape.import,
  DeviceChange: z.strictObject(deviceChange),
  NewFurtherToken: contracts.PutFurtherToken.shape.token,
  NewPreferences: contracts.PutUserPreferences.shape.preferences,
  NewTopic: contracts.CreateTopic.shape.topic,
  TopicChange: contracts.ChangeTopic.shape.topic,
  NewTemplate: contracts.TemplateContent,
  NewPreview: contracts.PreviewTemplate.shape.preview,
  StatsQuery: contracts.StatsQuery,
  NewWebhook: contracts.CreateWebhook.shape.webhook,
  WebhookChange: contracts.ChangeWebhook.shape.webhook,
  NewProject: contracts.CreateProject.shape.project,
  ProjectChange: contracts.ChangeProject.shape.project,
  NewPause: contracts.PauseSends,
  NewRollout: contracts.Rollout,
  LimitsChange: contracts.ChangeLimits.shape.limits,
  KindDeclaration: contracts.PutKind.shape.kind,
  NewProjectToken: contracts.CreateToken.shape.token,
  NewOperator: contracts.CreateOperator.shape.operator,
  OperatorChange: contracts.ChangeOperator.shape.operator,
  AuditFilters: contracts.AuditExportQuery,
  NewIdentityKey: contracts.CreateIdentityKey,
  TestPush: contracts.TestPush,
  ApnsSettings: contracts.ApnsSettings,
  FcmSettings: contracts.FcmSettings,
  WebPushSettings: contracts.WebPushSettings,
  VapidKeyPair: contracts.VapidKeyPair,
};

/** The data of each event, by the type that HTTP names it by. */
const eventSchemas: [string, z.ZodType][] = Object.values(contracts.events)
  // No project gets it.
  .filter((event) => event.ceType !== contracts.AuditRecordedV1.ceType)
  .map((event) => [event.ceType, event.schema]);
const eventTypes = eventSchemas.map(([type]) => type);

/** Enums that forms and options offer. */
const values = {
  deviceStatus: contracts.DeviceStatus.options,
  platform: contracts.Platform.options,
  notificationStatus: contracts.NotificationStatus.options,
  deliveryStatus: contracts.DeliveryStatus.options,
  messageStatus: contracts.WebhookMessageStatus.options,
  recipientKind: contracts.RecipientKind.options,
  importFormat: contracts.ImportFormat.options,
  scope: contracts.Scope.options,
  role: contracts.OperatorRole.options,
  projectRole: contracts.ProjectRole.options,
  environment: contracts.ApnsEnvironment.options,
  tokenKind: contracts.FcmTokenKind.options,
  past: contracts.Past.options,
  urgency: contracts.Urgency.options,
  pushType: contracts.PushType.options,
  sendPushType: contracts.SendPushType.options,
  eventType: eventTypes,
};

/** Objects share their fields with smaller ones by chance. */
const minBaseFields = 5;

const jsonSchema = (schema: z.ZodType, io: "input" | "output"): Json =>
  z.toJSONSchema(schema, { io, unrepresentable: "any" }) as Json;

const nameOf = ({ $ref }: Json): string => $ref?.split("/").at(-1) ?? "";

const comment = (description: string | undefined): string =>
  description === undefined ? "" : `/** ${description.replaceAll("*/", "*\\/")} */\n`;

/** Types of what callers write that a JSON schema cannot say, by field. */
const ownTypes: Readonly<Record<string, string>> = {
  targets: "readonly Target[]",
  target: "RecipientTarget",
  // A time with or without offset has no format.
  send_at: "Date | string",
};

/**
 * Writes TypeScript types of JSON schemas. For answers, named objects and enums become types of their own, and enums are open. For inputs,
 * everything is inlined, and enums are closed.
 */
const createWriter = (io: "input" | "output") => {
  const named = new Map<string, string>();
  const bases = new Map<string, ReadonlySet<string>>();
  const typeOf = (schema: Json, defs: Record<string, Json>): string => {
    const inner = (one: Json) => typeOf(one, defs);
    if (schema.$ref !== undefined) {
      const name = nameOf(schema);
      const target = defs[name] ?? {};
      const isScalar = target.enum === undefined && target.properties === undefined && target.anyOf === undefined;
      return io === "input" || isScalar ? inner(target) : define(name, target, defs);
    }
    if (schema.const !== undefined) return JSON.stringify(schema.const);
    if (schema.enum !== undefined) {
      const values = eventTypes.every((type) => schema.enum?.includes(type))
        ? "keyof EventData"
        : schema.enum.map((value) => JSON.stringify(value)).join(" | ");
      return io === "output" ? `Open<${values}>` : values;
    }
    const union = schema.anyOf ?? schema.oneOf;
    if (union !== undefined) return union.map(inner).join(" | ");
    if (schema.allOf !== undefined) return schema.allOf.map(inner).join(" & ");
    if (Array.isArray(schema.type)) return schema.type.map((type) => inner({ ...schema, type })).join(" | ");
    if (schema.type === "array") return `${io === "input" ? "readonly " : ""}(${inner(schema.items ?? {})})[]`;
    if (schema.type === "object" && schema.properties === undefined) {
      const values = schema.additionalProperties;
      return `Record<string, ${typeof values === "object" ? inner(values) : "unknown"}>`;
    }
    if (schema.type === "object") return objectOf(fieldsOf(schema, defs));
    if (schema.type === "integer") return "number";
    if (schema.format === "date-time" && io === "input") return "Date | string";
    return typeof schema.type === "string" ? schema.type : "unknown";
  };
  const fieldsOf = (schema: Json, defs: Record<string, Json>): string[] =>
    Object.entries(schema.properties ?? {}).map(([name, field]) => {
      const optional = schema.required?.includes(name) ? "" : "?";
      const absent = optional !== "" && io === "input" ? " | undefined" : "";
      const key = /^\w+$/.test(name) ? name : JSON.stringify(name);
      const type = (io === "input" && ownTypes[name]) || typeOf(field, defs);
      return `${comment(field.description)}${key}${optional}: ${type}${absent};`;
    });
  /** An object that has all fields of a larger type is that type and its own fields. */
  const objectOf = (fields: readonly string[]): string => {
    const [base] = [...bases]
      .filter(([, of]) => [...of].every((field) => fields.includes(field)))
      .toSorted(([, one], [, other]) => other.size - one.size);
    const rest = fields.filter((field) => !base?.[1].has(field));
    const text = `{\n${rest.join("\n")}\n}`;
    if (base === undefined) return text;
    return rest.length === 0 ? base[0] : `${base[0]} & ${text}`;
  };
  const addBase = (name: string, fields: readonly string[]): void => {
    if (fields.length >= minBaseFields) bases.set(name, new Set(fields));
  };
  const define = (name: string, schema: Json, defs: Record<string, Json>): string => {
    if (!named.has(name)) {
      named.set(name, "");
      named.set(name, `${comment(schema.description)}export type ${name} = ${typeOf(schema, defs)};`);
      if (schema.properties !== undefined) addBase(name, fieldsOf(schema, defs));
    }
    return name;
  };
  return {
    add: (schema: z.ZodType, as?: string) => {
      const json = jsonSchema(schema, io);
      const defs = json.$defs ?? {};
      const root = json.$ref === undefined ? json : (defs[nameOf(json)] ?? {});
      define(as ?? nameOf(json), root, defs);
    },
    /** A type of the fields that all these objects have, for those that are written later. */
    addCommon: (name: string, schemas: readonly z.ZodType[]) => {
      const [first = [], ...others] = schemas.map((schema) => {
        const json = jsonSchema(schema, io);
        const defs = json.$defs ?? {};
        return fieldsOf(json.$ref === undefined ? json : (defs[nameOf(json)] ?? {}), defs);
      });
      const common = first.filter((field) => others.every((fields) => fields.includes(field)));
      named.set(name, `export type ${name} = {\n${common.join("\n")}\n};`);
      bases.set(name, new Set(common));
    },
    typeOf: (schema: z.ZodType) => {
      const json = jsonSchema(schema, io);
      return typeOf(json, json.$defs ?? {});
    },
    text: () => [...named.values()].join("\n\n"),
  };
};

const root = join(import.meta.dirname, "../../..");

const format = (text: string): string => {
  execFileSync(join(root, "tools/install"), ["tools/check"], { stdio: ["ignore", "ignore", "inherit"] });
  const biome = join(root, "tools/check/node_modules/.bin/biome");
  return execFileSync(biome, ["format", "--stdin-file-path=x.ts"], { input: text, encoding: "utf8" });
};

/** The types of the HTTP API as the client has them: `src/api-types.ts`. */
export const generateTypes = (): string => {
  const answered = createWriter("output");
  answered.addCommon("SharedContent", [contracts.TemplateContent, contracts.Notification]);
  answered.addCommon("DeliveryOutcome", [contracts.Delivery, contracts.DeviceNotification]);
  answered.addCommon("ActivityFacts", [contracts.Activity, contracts.DeviceActivity]);
  const { series, totals } = contracts.Stats.shape;
  answered.addCommon("StatsFigures", [series.element, totals]);
  for (const schema of answers) answered.add(schema);
  const taken = createWriter("input");
  taken.addCommon("NewSharedContent", [inputs.NewTemplate, inputs.NewNotification]);
  for (const [name, schema] of Object.entries(inputs)) taken.add(schema, name);
  for (const entity of ["device", "topic", "notification", "delivery"]) {
    const schemas = eventSchemas.flatMap(([type, schema]) => (type.startsWith(`io.herald.${entity}.`) ? [schema] : []));
    answered.addCommon(`${entity[0]?.toUpperCase()}${entity.slice(1)}Event`, schemas);
  }
  const events = eventSchemas.map(([type, schema]) => `"${type}": ${answered.typeOf(schema)};`);
  const eventData = `/** The data of each type of event. */\nexport type EventData = {\n${events.join("\n")}\n};`;
  return format(`// Generated from the schemas of packages/contracts by test/generate-types.ts: npm run docs writes it again.

/** One of these values; later versions of Herald may add some. */
export type Open<Known extends string> = Known | (string & Record<never, never>);

/** A target that names one user, or one device by its id or push token. */
export type RecipientTarget = \`user:\${string}\` | \`device:\${string}\` | \`token:\${string}\`;

/** Whom a notification is for. A topic's bare name, which the API takes too, is none here: a wrong prefix would look like one. */
export type Target =
  | "all"
  | RecipientTarget
  | \`topic:\${string}\`
  | \`\${"metadata" | "identifiers"}:\${string}=\${string}\`
  | \`condition:\${string}\`;

${answered.text()}

${eventData}

${taken.text()}

/** The values that this version of Herald knows, for forms and options. Answers of later versions may contain more. */
export const knownValues = ${JSON.stringify(values)} as const;
`);
};
