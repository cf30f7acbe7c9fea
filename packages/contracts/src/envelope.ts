import { z } from "zod";
import { type ErrorCode, errors } from "./errors.ts";
import {
  isDeepPage,
  KeysetRequest,
  keysetPageOf,
  ListRequest,
  listQuery,
  PageQuery,
  PageRequest,
  pageOf,
} from "./http/v1/pagination.ts";

/** The NATS headers that Herald sets, beside `traceparent`. */
export const headerNames = {
  /** The id of the HTTP request that caused the message. */
  requestId: "Herald-Request-Id",
  /** On a request: how long its caller waits for the answer, in milliseconds from its receipt. */
  budgetMs: "Herald-Budget-Ms",
  /** The sender's id of a request that got no reply several times. */
  suspect: "Herald-Suspect",
  ceId: "ce-id",
  ceSource: "ce-source",
  ceSpecVersion: "ce-specversion",
  ceSubject: "ce-subject",
  ceTime: "ce-time",
  ceType: "ce-type",
  contentType: "content-type",
  /** On a dead letter: the message's origin, and why it failed. */
  deadSubject: "Herald-Dead-Subject",
  deadStream: "Herald-Dead-Stream",
  deadSequence: "Herald-Dead-Sequence",
  deadReason: "Herald-Dead-Reason",
  deadDetail: "Herald-Dead-Detail",
  deadDeliveries: "Herald-Dead-Deliveries",
  deadAt: "Herald-Dead-At",
  /** On a dead letter: when its stream stored the message, to distinguish it from its replay. */
  deadPublishedAt: "Herald-Dead-Published-At",
  /** On a dead letter whose body was too large to keep: its size in bytes. */
  deadBodyBytes: "Herald-Dead-Body-Bytes",
  /** On a replayed message: its dead letter. */
  replayOf: "Herald-Replay-Of",
} as const;

/** The fields after the colons of a subject pattern such as `push.cmd.v1.dispatch.send.:projectId`. */
type PatternFields<Pattern extends string> = Pattern extends `${infer Head}.${infer Rest}`
  ? PatternFields<Head> | PatternFields<Rest>
  : Pattern extends `:${infer Field}`
    ? Field
    : never;

/** The messages of one subject: their name, the subject's pattern and the schema of their data. */
export type MessageContract<Schema extends z.ZodType = z.ZodType> = {
  /** PascalCase with the version, such as `SendV1`: the name in outboxes, logs and fixtures. */
  readonly name: string;
  /** The subject with `:field` for variable tokens: low in cardinality, so it names spans and metrics. */
  readonly pattern: string;
  /** The subject that matches every message of this contract. */
  readonly filter: string;
  readonly schema: Schema;
  /** A faster check that the schema would accept the data unchanged; absent if the schema is fast enough. */
  readonly isPlain?: (data: unknown) => data is z.output<Schema>;
  /** The message's JSON, for data that contains it; absent: it is made of the data. */
  textOf?(data: z.output<Schema>): string;
  /** The subject of one message. Throws when a field is not exactly one token of a subject. */
  readonly subject: (data: z.output<Schema>) => string;
};

/** The data of a contract's messages. */
export type DataOf<Contract extends { schema: z.ZodType }> = z.output<Contract["schema"]>;

/** One token of a subject. An unchecked dot, star, `>` or space would change the subject of a message. */
const token = /^[A-Za-z0-9_-]+$/;

/** Declares the messages of a subject. Every `:field` of the pattern must be a string field of the data. */
export const defineMessage = <
  Pattern extends string,
  Schema extends z.ZodType<Record<PatternFields<Pattern>, string | number>>,
>(
  name: string,
  pattern: Pattern,
  schema: Schema,
  isPlain?: (data: unknown) => data is z.output<Schema>,
): MessageContract<Schema> => {
  const parts = pattern.split(".");
  return {
    name,
    pattern,
    filter: parts.map((part) => (part.startsWith(":") ? "*" : part)).join("."),
    schema,
    ...(isPlain ? { isPlain } : {}),
    subject: (data) =>
      parts
        .map((part) => {
          if (!part.startsWith(":")) return part;
          const value = String((data as Record<string, unknown>)[part.slice(1)]);
          if (!token.test(value)) throw new TypeError(`${name}: ${part.slice(1)} cannot be part of a subject`);
          return value;
        })
        .join("."),
  };
};

/** The JSON of a message, and the fields of its subject. */
type EncodedMessage = { readonly text: string } & Readonly<Record<string, string>>;

/** The contract for messages that their author has checked and encoded. */
export const preEncoded = (contract: MessageContract): MessageContract<z.ZodType<EncodedMessage>> => ({
  ...contract,
  schema: z.custom<EncodedMessage>(),
  isPlain: (_): _ is EncodedMessage => true,
  textOf: ({ text }) => text,
});

const eventPrefix = "push.evt.v1.";

/** The project and type of `push.evt.v1.<project>.<entity>.<past tense>`; undefined for any other subject. */
export const eventTypeOf = (subject: string): { projectId: string; type: string } | undefined => {
  if (!subject.startsWith(eventPrefix)) return undefined;
  const afterProject = subject.indexOf(".", eventPrefix.length);
  const afterEntity = subject.indexOf(".", afterProject + 1);
  if (afterProject < 0 || afterEntity < 0 || subject.includes(".", afterEntity + 1)) return undefined;
  return {
    projectId: subject.slice(eventPrefix.length, afterProject),
    type: `io.herald.${subject.slice(afterProject + 1)}.v1`,
  };
};

/** The subject of a project's events of one type; without a type, the filter of all. `*` stands for every project. */
export const eventSubject = (projectId: string, type?: string): string =>
  `${eventPrefix}${projectId}.${type === undefined ? ">" : type.slice("io.herald.".length, -".v1".length)}`;

type Shape = z.core.$ZodLooseShape;

/** A request on core NATS. One service answers it in time, or the caller gets an error that says the service is unavailable. */
export type RequestContract<Request extends z.ZodType = z.ZodType, Answer extends z.ZodType = z.ZodType> = {
  /** `<service>.<resource>.<verb>`. */
  readonly name: string;
  /** `push.req.v1.` and the name. */
  readonly subject: string;
  /** The service that answers; its queue group has the same name. */
  readonly service: string;
  readonly request: Request;
  readonly answer: Answer;
  /** Whether the answer needs a scan of many rows: a service runs few such requests at a time. Absent: never. */
  readonly isHeavy?: ((request: z.output<Request>) => boolean) | undefined;
  /** A fast check whether `answer` would take an answer as it is. */
  readonly isPlain?: ((answer: unknown) => boolean) | undefined;
};

const named = <Contract extends object>(name: string, contract: Contract) => ({
  ...contract,
  name,
  subject: `push.req.v1.${name}`,
  service: name.slice(0, name.indexOf(".")),
});

/** A request of {@link defineRequests}, by its fields. */
export const oneRequest = <Fields extends Shape, Answer extends z.ZodType>(
  fields: Fields,
  answer: Answer,
  isHeavy?: (request: z.output<z.ZodObject<Fields>>) => boolean,
  isPlain?: (answer: unknown) => boolean,
): RequestContract<z.ZodObject<Fields>, Answer> => named("", { request: z.object(fields), answer, isHeavy, isPlain });

/**
 * Declares what a service answers about a resource: `defineRequests("registry.devices", { get: oneRequest({ projectId, deviceId }, Device) })`.
 * The key of a request is its verb, `ofDevice` for `of-device`.
 */
export const defineRequests = <Requests extends Readonly<Record<string, { readonly answer: z.ZodType }>>>(
  resource: `${"registry" | "dispatch" | "analytics"}.${string}`,
  requests: Requests,
): Requests =>
  Object.fromEntries(
    Object.entries(requests).map(([key, contract]) => {
      const verb = key.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
      return [key, named(`${resource}.${verb}`, contract)];
    }),
  ) as unknown as Requests;

/** Declares one request by its whole name. */
export const defineRequest = <Fields extends Shape, Answer extends z.ZodType>(
  name: string,
  ...of: Parameters<typeof oneRequest<Fields, Answer>>
): RequestContract<z.ZodObject<Fields>, Answer> => named(name, oneRequest(...of));

/** The requested page of a list with this query: by number or key, in an order of time, or by key alone. */
type PageOfQuery<Query extends z.ZodObject> = Query["shape"] extends { sort: unknown }
  ? typeof ListRequest
  : Query["shape"] extends { page: unknown }
    ? typeof PageRequest
    : typeof KeysetRequest;

/** A request for a page of a list, with the query of the route that forwards it. */
export type ListContract<Fields extends Shape, Row extends z.ZodType, Query extends z.ZodObject> = RequestContract<
  z.ZodObject<Fields & Omit<Query["shape"], keyof typeof listQuery> & { page: PageOfQuery<Query> }>,
  PageOfQuery<Query> extends typeof KeysetRequest
    ? ReturnType<typeof keysetPageOf<Row>>
    : ReturnType<typeof pageOf<Row>>
> & { readonly query: Query };

/**
 * {@link oneRequest} for a page of a list's rows. The filters of its query are fields of the request. Numbered pages deep in the list are heavy,
 * and what `isHeavy` says.
 */
export const listRequest = <Fields extends Shape, Row extends z.ZodType, Query extends z.ZodObject = typeof PageQuery>(
  fields: Fields,
  row: Row,
  query: Query = PageQuery as unknown as Query,
  isHeavy: (request: z.output<ListContract<Fields, Row, Query>["request"]>) => boolean = () => false,
): ListContract<Fields, Row, Query> => {
  const { shape } = query;
  const filters = Object.fromEntries(Object.entries(shape).filter(([field]) => !(field in listQuery)));
  const [page, answer] =
    "page" in shape ? ["sort" in shape ? ListRequest : PageRequest, pageOf(row)] : [KeysetRequest, keysetPageOf(row)];
  const isSlow = (request: unknown) => isHeavy(request as never) || isDeepPage(request as never);
  return { ...oneRequest({ ...fields, ...filters, page }, answer, isSlow), query } as never;
};

/** Why a request failed. */
export const ReplyError = z.object({
  code: z.enum(Object.keys(errors) as [ErrorCode, ...ErrorCode[]]),
  messages: z.array(z.string()).min(1),
  retryAfterSeconds: z.number().int().min(0).optional(),
});
export type ReplyError = z.infer<typeof ReplyError>;

/** The reply to a request: its answer, or an error. */
export type Reply = { readonly answer: unknown } | { readonly error: ReplyError };
