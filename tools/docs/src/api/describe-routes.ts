import { type ErrorCode, errors, Problem, PutDevice, sessionCookieName } from "@herald/contracts";
import { version } from "@herald/kit";
import { z } from "zod";
import {
  createDocument,
  type ZodOpenApiOperationObject,
  type ZodOpenApiPathItemObject,
  type ZodOpenApiPathsObject,
  type ZodOpenApiResponseObject,
  type ZodOpenApiResponsesObject,
} from "zod-openapi";
import { type CallerKind, roleOf } from "../../../../services/gateway/src/auth/caller.ts";
import { type Route, tags } from "../../../../services/gateway/src/http/route.ts";
import { IdempotencyKey } from "../../../../services/gateway/src/http/serve-route.ts";
import { describeWebhooks, webhookMessages } from "./describe-webhooks.ts";
import { addExamples, type Media } from "./example-of.ts";
import { overrideSchema, withoutRepeats } from "./override-schema.ts";

/** The credentials that a route takes, each with the scopes or the role that it needs (OpenAPI 3.1 lists both by name). */
const securityOf = (route: Route): Record<string, string[]>[] => {
  const { by, scopes = [], orDevice } = route.access;
  const role = roleOf(route.access);
  const needs: Record<CallerKind, Record<string, string[]>> = {
    project: { projectToken: [...scopes] },
    device: { deviceCredential: [] },
    user: { userToken: [] },
    client: {},
    operator: { operatorToken: [role ?? ""] },
  };
  return [
    ...by.map((kind) => needs[kind]),
    ...(orDevice ? [needs.device] : []),
    // Elsewhere an operator acts for a project.
    ...(role !== undefined && !by.includes("operator") ? [needs.operator] : []),
    ...(role !== undefined && takesSession(route) ? [{ operatorSession: [role] }] : []),
  ];
};

const RequestId = z.string().meta({ description: "Names the request in logs; one that is sent is taken over" });
const Link = z.string().optional().meta({ description: "Pages of the list (RFC 8288)" });
const RetryAfter = z.string().meta({ description: "Seconds until it is worth trying again" });

const LastEventId = z
  .string()
  .max(100)
  .meta({ description: "The last `id` that you received: the stream continues after it" });

/** Whether the route streams server-sent events, which a client resumes by the last id. */
const streams = (route: Route): boolean => Object.values(route.responses).some(({ stream }) => stream === true);
/** The rate limit headers of authenticated callers. */
const rateLimitHeaders = {
  RateLimit: z.string().optional().meta({ description: "What is left, by policy: `r` requests for `t` seconds" }),
  "RateLimit-Policy": z.string().optional().meta({ description: "Limits by name: `q` requests in `w` seconds" }),
};

const headersOf: Record<number, Record<string, z.ZodType>> = {
  401: { "WWW-Authenticate": z.string() },
  429: { "Retry-After": RetryAfter, ...rateLimitHeaders },
  503: { "Retry-After": RetryAfter },
};

/** Whether an operator's session may call the route. */
const takesSession = ({ access }: Route): boolean => roleOf(access) !== undefined && access.signsIn !== true;

/** A route's own errors, and those that its declaration implies. */
export const errorsOf = (route: Route): ErrorCode[] => {
  const { by, scopes } = route.access;
  const credential = by.some((kind) => kind !== "client");
  const when = (applies: boolean, ...codes: ErrorCode[]) => (applies ? codes : []);
  const codes: ErrorCode[] = [
    "malformed-request",
    ...when(route.upload !== undefined, "unsupported-media-type", "body-too-large"),
    ...when(route.body !== undefined, "malformed-json", "body-too-large", "unsupported-media-type"),
    ...when(credential, "unauthenticated"),
    ...when(credential && (scopes !== undefined || by.includes("device") || by.includes("operator")), "forbidden"),
    ...when(takesSession(route) && route.method !== "get", "csrf-token-invalid"),
    // Registry deletes a project before the project's tokens stop working.
    ...when(by.includes("project") || by.includes("device"), "project-not-found"),
    ...when(by.includes("user"), "user-token-invalid"),
    ...Object.values(route.params ?? {}).map((param) => param.error),
    "validation-failed",
    ...when(route.method === "post", "request-in-progress", "idempotency-key-reused"),
    "rate-limited",
    "bus-unavailable",
    "service-unavailable",
    "database-unavailable",
    "overloaded",
    "queue-full",
    ...(route.errors ?? []),
  ];
  return [...new Set(codes)];
};

/** The body of an error response. */
const problemOf = (code: ErrorCode): Problem => {
  const fault =
    code === "validation-failed"
      ? { pointer: "#/notification/targets", detail: "at least one target is required", code: "too-few" }
      : { detail: errors[code].title, code };
  const text = code === "validation-failed" ? `notification.targets: ${fault.detail}` : fault.detail;
  return {
    errors: [text],
    problems: [fault],
    type: `/docs/errors#${code}`,
    title: errors[code].title,
    status: errors[code].status,
    detail: text,
    instance: "0198f1c2-7d1e-7cc4-8d5e-2f9f0a4b6c11",
  };
};

/** Node refuses such a request before a route sees it. */
const headersTooLarge: ZodOpenApiResponseObject = {
  id: "headers-too-large",
  description: "The URL and the headers are larger than 16 KiB (`malformed-request`)",
  headers: z.object({ "X-Request-Id": RequestId }),
  content: {
    "application/problem+json": { schema: Problem, example: { ...problemOf("malformed-request"), status: 431 } },
  },
};

const errorResponses = (route: Route, known: Map<string, ZodOpenApiResponseObject>): ZodOpenApiResponsesObject => ({
  ...Object.fromEntries(
    [...Map.groupBy(errorsOf(route), (code) => errors[code].status)].map(([status, codes]) => {
      // Routes with the same errors share a component; otherwise the document would be five times as long.
      const id = codes.toSorted().join(".");
      const response = known.get(id) ?? {
        id,
        description: codes.map((code) => `${errors[code].title} (\`${code}\`)`).join("; "),
        headers: z.object({ "X-Request-Id": RequestId, ...headersOf[status] }),
        content: { "application/problem+json": { schema: Problem, example: problemOf(codes[0] ?? "internal") } },
      };
      known.set(id, response);
      return [`${status}` as `${4 | 5}${string}`, response];
    }),
  ),
  431: headersTooLarge,
});

/** CSV is text; every other media type contains values of the schema. */
const contentOf = (schema: z.ZodType, types: readonly string[]) =>
  Object.fromEntries(types.map((type) => [type, { schema: type === "text/csv" ? z.string() : schema }]));

const answerResponses = (route: Route): ZodOpenApiResponsesObject =>
  Object.fromEntries(
    Object.entries(route.responses).map(([status, { description, schema, stream, download }]) => [
      status as `2${string}`,
      {
        description,
        headers: z.object({
          "X-Request-Id": RequestId,
          ...(route.query && !stream && !download && { Link }),
          ...(route.access.by.some((kind) => kind === "project" || kind === "device") && rateLimitHeaders),
          ...(route.method === "post" && { "Idempotent-Replayed": z.literal("true").optional() }),
        }),
        ...(schema && {
          content: contentOf(schema, stream ? ["text/event-stream"] : (download ?? ["application/json"])),
        }),
      },
    ]),
  );

/** Adds the scopes and the role that a route needs. */
const descriptionOf = ({ access, description }: Route): string | undefined => {
  const { role, grant, scopes = [] } = access;
  const scope = scopes.map((name) => `\`${name}\``).join(" and ");
  const inProject = grant && `, or ${grant === role ? "it" : `the role \`${grant}\``} in the project`;
  const sentences = [
    description,
    scope && `A project token needs the scope${scopes.length > 1 ? "s" : ""} ${scope}.`,
    role && !access.signsIn && `Needs the role \`${role}\`${inProject ?? ""}.`,
  ];
  return sentences.filter(Boolean).join(" ") || undefined;
};

const operationOf = (route: Route, known: Map<string, ZodOpenApiResponseObject>): ZodOpenApiOperationObject => {
  const path = Object.entries(route.params ?? {}).map(([name, { schema }]) => [name, schema]);
  return {
    operationId: route.operationId,
    tags: [route.tag],
    summary: route.summary,
    description: descriptionOf(route),
    security: securityOf(route),
    requestParams: {
      ...(path.length > 0 && { path: z.object(Object.fromEntries(path)) }),
      ...(route.query && { query: route.query as z.ZodObject }),
      ...(route.method === "post" && { header: z.object({ "Idempotency-Key": IdempotencyKey.optional() }) }),
      ...(streams(route) && { header: z.object({ "Last-Event-ID": LastEventId.optional() }) }),
    },
    ...(route.upload && {
      requestBody: {
        required: true,
        content: Object.fromEntries(
          route.upload.map((type) => [type, { schema: { type: "string" as const, format: "binary" } }]),
        ),
      },
    }),
    ...(route.body && {
      requestBody: {
        // A request without a body counts as `{}`.
        required: !route.body.safeParse({}).success,
        content: { "application/json": { schema: route.body } },
      },
    }),
    responses: { ...answerResponses(route), ...errorResponses(route, known) },
  };
};

/** How a stream writes a row. */
const lineOf: Readonly<Record<string, (json: string) => string>> = {
  "application/x-ndjson": (json) => `${json}\n`,
  "text/event-stream": (json) => `id: …\ndata: ${json}\n\n`,
};

/** Streams are text, whose lines are of the schema: a generated client would parse the whole as one row. Changes the document. */
const asText = (document: ReturnType<typeof createDocument>): typeof document => {
  for (const { get } of Object.values(document.paths ?? {}) as ZodOpenApiPathItemObject[])
    for (const { content } of Object.values(get?.responses ?? {}) as { content?: Record<string, Media> }[])
      for (const [type, media] of Object.entries(content ?? {})) {
        const line = lineOf[type];
        if (line === undefined) continue;
        media.schema = { type: "string", contentMediaType: "application/json", contentSchema: media.schema };
        media.example = line(JSON.stringify(media.example));
      }
  return document;
};

const description = `Register devices, send notifications to them, and read the result for each device.

Errors are \`application/problem+json\` and list every problem in \`errors\`. Requests with unknown fields or query parameters are refused; responses may gain fields. Enums in responses are open (\`x-extensible-enum\`): a later version may add values, so do not treat an unknown one as an error. Lists take \`page\` and \`per_page\`, or \`after\` for long walks. What each error means: /docs/errors.`;

/** No route, but where schemas stand that no operation contains. */
const forSchemas = "/schemas";

/** The OpenAPI document, made from the same declarations as the HTTP routes. */
export const describeRoutes = (routes: readonly Route[]): ReturnType<typeof createDocument> => {
  const paths: ZodOpenApiPathsObject = {};
  const failures = new Map<string, ZodOpenApiResponseObject>();
  for (const route of routes)
    paths[route.path] = { ...paths[route.path], [route.method]: operationOf(route, failures) };
  paths[forSchemas] = {
    put: {
      // Herald validates each entry of `PUT /devices` separately, so no body schema contains this one.
      requestBody: { content: { "application/json": { schema: PutDevice } } },
      // Herald writes what it posts to webhooks: a request, but as open as an answer.
      responses: { 200: { description: "", content: { "application/json": { schema: z.union(webhookMessages) } } } },
    },
  };
  const document = createDocument(
    {
      openapi: "3.1.0",
      info: { title: "Herald", version, description, license: { name: "Apache-2.0", identifier: "Apache-2.0" } },
      servers: [{ url: "/" }],
      tags: tags.map((name) => ({ name })),
      paths,
      webhooks: describeWebhooks(),
      components: {
        securitySchemes: {
          projectToken: {
            type: "http",
            scheme: "bearer",
            description: "A project token, `hpt_…`, with the route's scope",
          },
          userToken: {
            type: "http",
            scheme: "bearer",
            description: "A token that your backend signs for one user, as in `user_token`",
          },
          deviceCredential: { type: "http", scheme: "bearer", description: "A device's credential, `hdc_…`" },
          operatorToken: {
            type: "http",
            scheme: "bearer",
            description:
              "An operator's token, `hop_…`, with the route's role, or HERALD_ADMIN_TOKEN. Routes of a project need the header `Herald-Project`",
          },
          operatorSession: {
            type: "apiKey",
            in: "cookie",
            name: sessionCookieName(true),
            description:
              "An operator's session (POST /admin/v1/sessions); `herald_session` without https. Changes need the header `Herald-Csrf`; routes of a project need `Herald-Project`.",
          },
        },
      },
    },
    { override: overrideSchema },
  );
  delete document.paths?.[forSchemas];
  return asText(addExamples(withoutRepeats(document)));
};
