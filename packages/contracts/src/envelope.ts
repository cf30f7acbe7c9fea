import type { z } from "zod";

/** Names of the NATS headers that Herald sets, beside `traceparent` and the CloudEvents ones. */
export const headerNames = {
  /** Correlates everything that one HTTP request caused. */
  requestId: "Herald-Request-Id",
  /** On a request: how many milliseconds its caller waits for the answer, from its receipt on. */
  budgetMs: "Herald-Budget-Ms",
  ceId: "ce-id",
  ceSource: "ce-source",
  ceSpecVersion: "ce-specversion",
  ceSubject: "ce-subject",
  ceTime: "ce-time",
  ceType: "ce-type",
  contentType: "content-type",
  /** On a dead letter: where the message came from and why it is here. */
  deadSubject: "Herald-Dead-Subject",
  deadStream: "Herald-Dead-Stream",
  deadSequence: "Herald-Dead-Sequence",
  deadReason: "Herald-Dead-Reason",
  deadDetail: "Herald-Dead-Detail",
  deadDeliveries: "Herald-Dead-Deliveries",
  deadAt: "Herald-Dead-At",
  /** On a dead letter: when its stream had taken the message, which tells it from its replay. */
  deadPublishedAt: "Herald-Dead-Published-At",
  /** On a dead letter whose body did not fit: how many bytes it had. */
  deadBodyBytes: "Herald-Dead-Body-Bytes",
  /** On a message that was published again: the dead letter it comes from. */
  replayOf: "Herald-Replay-Of",
} as const;

/** The field names behind the colons of a subject pattern such as `push.cmd.v1.dispatch.send.:projectId`. */
type PatternFields<Pattern extends string> = Pattern extends `${infer Head}.${infer Rest}`
  ? PatternFields<Head> | PatternFields<Rest>
  : Pattern extends `:${infer Field}`
    ? Field
    : never;

/** What one subject carries: its wire name, its pattern and the schema of its data. */
export type MessageContract<Schema extends z.ZodType = z.ZodType> = {
  /** PascalCase with the version, such as `SendV1`: the name in outboxes, logs and fixtures. */
  readonly name: string;
  /** The subject with `:field` where data decides: low in cardinality, so it names spans and metrics. */
  readonly pattern: string;
  /** The subject that matches every message of this contract. */
  readonly filter: string;
  readonly schema: Schema;
  /** Whether the schema takes the data as it is; absent where nothing is quicker than asking it. */
  readonly isPlain?: (data: unknown) => data is z.output<Schema>;
  /** The subject of one message. Throws where a field would not be exactly one token of a subject. */
  readonly subject: (data: z.output<Schema>) => string;
};

/** The data of a contract's messages. */
export type DataOf<Contract extends { schema: z.ZodType }> = z.output<Contract["schema"]>;

/** One token of a subject: a stranger's dot, star, `>` or space would publish somewhere else. */
const token = /^[A-Za-z0-9_-]+$/;

/** Declares what a subject carries. Every `:field` of the pattern must be a string field of the data. */
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

/** A question on core NATS: one service answers it, within the time given or the asker is told that it is unavailable. */
export type RequestContract<Request extends z.ZodType = z.ZodType, Answer extends z.ZodType = z.ZodType> = {
  readonly name: string;
  /** `push.req.v1.<service>.<resource>.<verb>`. */
  readonly subject: string;
  /** The queue group: the service that answers. */
  readonly service: string;
  readonly request: Request;
  readonly answer: Answer;
  /** Whether the answer takes a scan of many rows: a service works on few of those at a time. Absent: it never does. */
  readonly isHeavy?: ((request: z.output<Request>) => boolean) | undefined;
};

/** Declares a question: `defineRequest("registry", "devices", "list", request, answer)`. */
export const defineRequest = <Request extends z.ZodType, Answer extends z.ZodType>(
  service: "registry" | "dispatch" | "analytics",
  resource: string,
  verb: string,
  request: Request,
  answer: Answer,
  isHeavy?: (request: z.output<Request>) => boolean,
): RequestContract<Request, Answer> => ({
  name: `${service}.${resource}.${verb}`,
  subject: `push.req.v1.${service}.${resource}.${verb}`,
  service,
  request,
  answer,
  ...(isHeavy === undefined ? {} : { isHeavy }),
});
