import {
  ActivityId,
  DeadLetterId,
  DeviceId,
  type ErrorCode,
  IdentityKeyId,
  ImportId,
  Kind,
  NotificationId,
  OperatorId,
  ProjectId,
  PushName,
  TemplateName,
  TokenId,
  TokenType,
  TopicReference,
  UserId,
  VapidKeyId,
  WebhookId,
  WebhookMessageId,
} from "@herald/contracts";
import type { z } from "zod";

/** A path parameter. A value that fails the schema is answered with `error`, so an impossible id is a 404 like an unknown one. */
export type PathParam = {
  readonly schema: z.ZodType;
  readonly error: ErrorCode;
  /** The field of requests to services. */
  readonly field: string;
};
export type PathParams = Readonly<Record<string, PathParam>>;

/** Path parameters, each by the part of the path before it and its name. */
const pathParams = {
  "activities/{activity}": { schema: ActivityId, error: "activity-not-found", field: "activityId" },
  "dead-letters/{id}": { schema: DeadLetterId, error: "dead-letter-not-found", field: "deadLetterId" },
  "devices/{device}": { schema: DeviceId, error: "device-not-found", field: "deviceId" },
  "devices/{id}": { schema: DeviceId, error: "device-not-found", field: "deviceId" },
  "identity-keys/{key}": { schema: IdentityKeyId, error: "identity-key-not-found", field: "keyId" },
  "imports/{id}": { schema: ImportId, error: "import-not-found", field: "importId" },
  "keys/{key}": { schema: VapidKeyId, error: "vapid-key-not-found", field: "keyId" },
  "kinds/{kind}": { schema: Kind, error: "kind-not-found", field: "kind" },
  "messages/{message}": { schema: WebhookMessageId, error: "webhook-message-not-found", field: "messageId" },
  "notifications/{id}": { schema: NotificationId, error: "notification-not-found", field: "notificationId" },
  "notifications/{notification}": { schema: NotificationId, error: "notification-not-found", field: "notificationId" },
  "operators/{id}": { schema: OperatorId, error: "operator-not-found", field: "operatorId" },
  "projects/{id}": { schema: ProjectId, error: "project-not-found", field: "projectId" },
  "templates/{name}": { schema: TemplateName, error: "template-not-found", field: "name" },
  "tokens/{token}": { schema: TokenId, error: "token-not-found", field: "tokenId" },
  "tokens/{type}": { schema: TokenType, error: "validation-failed", field: "type" },
  "{type}/{name}": { schema: PushName, error: "validation-failed", field: "name" },
  "topics/{id}": { schema: TopicReference, error: "topic-not-found", field: "topic" },
  "topics/{topic}": { schema: TopicReference, error: "topic-not-found", field: "topic" },
  "users/{user}": { schema: UserId, error: "user-not-found", field: "userId" },
  "webhooks/{id}": { schema: WebhookId, error: "webhook-not-found", field: "webhookId" },
} as const satisfies PathParams;

type Keys<Path extends string, Before extends string = ""> = Path extends `${infer Part}/${infer Rest}`
  ? Keys<Part, Before> | Keys<Rest, Part>
  : Path extends `{${string}}`
    ? `${Before}/${Path}`
    : never;
type NameIn<Key extends string> = Key extends `${string}/{${infer Name}}` ? Name : never;

/** The parameters of a path such as `/devices/{id}/topics/{topic}`, by name. */
export type ParamsOf<Path extends string> = {
  readonly [Key in Keys<Path> as NameIn<Key>]: Key extends keyof typeof pathParams ? (typeof pathParams)[Key] : never;
};

/** The fields of requests that have the parameters of a path. */
export type PathFieldsOf<Path extends string> = {
  readonly [Key in Extract<Keys<Path>, keyof typeof pathParams> as (typeof pathParams)[Key]["field"]]: z.output<
    (typeof pathParams)[Key]["schema"]
  >;
};

/** Parsed parameters, by the fields of requests. */
export const fieldsOf = (declared: PathParams, params: Readonly<Record<string, unknown>>): Record<string, unknown> =>
  Object.fromEntries(Object.entries(declared).map(([name, { field }]) => [field, params[name]]));

/** The parameters of a path. A malformed value of the one that names what its route creates is a validation error. */
export const paramsOf = (path: string, creates?: string): PathParams => {
  const parts = path.split("/");
  const params = parts.flatMap((part, at): [string, PathParam][] => {
    if (!part.startsWith("{")) return [];
    const param = pathParams[`${parts[at - 1]}/${part}` as keyof typeof pathParams];
    const name = part.slice(1, -1);
    return [[name, name === creates ? { ...param, error: "validation-failed" } : param]];
  });
  return Object.fromEntries(params);
};
