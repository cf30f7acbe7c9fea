import { type GroupedSend, headerNames } from "@herald/contracts";
import { currentRequestId, inSpan, withRequestId } from "@herald/kit";
import type { MsgHdrs } from "@nats-io/transport-node";
import { type Context, context, propagation, ROOT_CONTEXT, type Span, TraceFlags, trace } from "@opentelemetry/api";

/** The headers of a message; `get` returns undefined or an empty text for one that it does not have. */
export type MessageHeaders = { get(name: string): string | undefined; keys(): Iterable<string> };

/** The time that a header says; `otherwise` if it says none. */
export const timeOf = (text: string, otherwise: Date): Date => {
  const time = new Date(text);
  return Number.isNaN(time.getTime()) ? otherwise : time;
};

const utf8 = new TextDecoder("utf-8", { fatal: true });

/** Parses a body as JSON. Returns undefined, which JSON cannot express, if the body is not JSON or not valid UTF-8. */
export const readJson = (body: Uint8Array | string): unknown => {
  try {
    return JSON.parse(typeof body === "string" ? body : utf8.decode(body));
  } catch {
    return undefined;
  }
};

/** Headers that the broker acts on. Never copy them when a message is published again. */
export const brokerHeaders = {
  messageId: "Nats-Msg-Id",
  batchId: "Nats-Batch-Id",
  batchSequence: "Nats-Batch-Sequence",
  batchCommit: "Nats-Batch-Commit",
  schedule: "Nats-Schedule",
  scheduleTarget: "Nats-Schedule-Target",
  ttl: "Nats-TTL",
} as const;

/** A dead letter has this prefix before the names of headers that the broker would act on. */
export const keptPrefix = "Herald-Original-";

/**
 * The Nats-Msg-Id of a message: the contract's name and the message's id. A stream dedupes ids across all its subjects, and two contracts
 * may use the same id, such as the start and the end of a notification. Without the name the stream would drop the later message.
 */
export const messageIdOf = (contract: { readonly name: string }, id: string): string => `${contract.name}/${id}`;

const encoder = new TextEncoder();

/**
 * Headers encoded for the wire. The client's own class searches all names for each header that it sets, which costs more than the publish,
 * although a publish only needs the bytes. Throws TypeError for a value of more than one line.
 * Bucket entries use these headers without request id and trace, because the stream would store them with each entry.
 */
export const plainHeaders = (all: Readonly<Record<string, string>>): MsgHdrs => {
  let text = "NATS/1.0\r\n";
  for (const [name, value] of Object.entries(all)) {
    if (/[\r\n]/.test(value)) throw new TypeError(`the header ${name} has more than one line`);
    text += `${name}: ${value}\r\n`;
  }
  const bytes = encoder.encode(`${text}\r\n`);
  return { encode: () => bytes } as unknown as MsgHdrs;
};

/** Headers of an outgoing message: request id and trace of `origin`, or the active ones, and `more`. */
export const outgoingHeaders = (more: Readonly<Record<string, string>> = {}, origin?: Origin): MsgHdrs => {
  const own: Record<string, string> = {};
  const requestId = origin ? origin.requestId : currentRequestId();
  if (requestId !== undefined) own[headerNames.requestId] = requestId;
  if (origin === undefined) propagation.inject(context.active(), own);
  else if (origin.traceparent !== undefined) {
    own.traceparent = origin.traceparent;
    if (origin.tracestate !== undefined) own.tracestate = origin.tracestate;
  }
  return plainHeaders({ ...own, ...more });
};

/** Whether a bucket's message marks its key as deleted or expired. */
export const isDeletion = (headers: MsgHdrs | undefined): boolean =>
  headers !== undefined && (headers.has("KV-Operation") || headers.has("Nats-Marker-Reason"));

/** The request and trace of one part of a message that carries parts of several requests. */
export type Origin = NonNullable<GroupedSend["origin"]>;

/** The active request id and trace. */
export const currentOrigin = (): Origin => {
  const requestId = currentRequestId();
  const carrier: Pick<Origin, "traceparent" | "tracestate"> = {};
  propagation.inject(context.active(), carrier);
  const { traceparent, tracestate } = carrier;
  return {
    ...(requestId !== undefined && { requestId }),
    ...(traceparent !== undefined && { traceparent }),
    ...(tracestate !== undefined && { tracestate }),
  };
};

/** The trace that a part of a message continues. */
export const contextOf = ({ traceparent, tracestate }: Origin): Context =>
  traceparent === undefined
    ? ROOT_CONTEXT
    : propagation.extract(ROOT_CONTEXT, { traceparent, ...(tracestate !== undefined && { tracestate }) });

/** Whether the trace of a part of a message is recorded. */
export const isRecorded = ({ traceparent }: Origin = {}): boolean =>
  traceparent !== undefined &&
  ((trace.getSpanContext(contextOf({ traceparent }))?.traceFlags ?? 0) & TraceFlags.SAMPLED) !== 0;

/** Runs `work` under the request id of its origin, in a consumer span that continues its trace. */
export const fromOrigin = <Result>(name: string, origin: Origin = {}, work: () => Promise<Result>): Promise<Result> => {
  const { requestId } = origin;
  const inside = () => inSpan(name, { kind: "consumer", parent: contextOf(origin) }, work);
  return requestId === undefined ? inside() : withRequestId(requestId, inside);
};

type Carrier = { readonly headers?: MessageHeaders | undefined };

/**
 * Runs `work` in a span that links the producer of every message. The span of a single message also continues its trace, so that one
 * trace covers the way from the HTTP request to the provider. A batch starts a new trace.
 */
export const withRemoteSpan = <Result>(
  name: string,
  kind: "consumer" | "server",
  messages: readonly Carrier[],
  work: (span: Span) => Promise<Result>,
): Promise<Result> => {
  const [first] = messages;
  const parent = messages.length === 1 ? producerOf(first) : ROOT_CONTEXT;
  return inSpan(name, { kind, parent }, (span) => {
    // Reading a header parses all of them: skip that when the span is not recorded.
    if (span.isRecording())
      span.addLinks(
        messages.flatMap((message) => {
          const producer = trace.getSpanContext(producerOf(message));
          return producer === undefined ? [] : [{ context: producer }];
        }),
      );
    return work(span);
  });
};

const producerOf = ({ headers }: Carrier = {}): Context =>
  headers === undefined
    ? ROOT_CONTEXT
    : propagation.extract(ROOT_CONTEXT, headers, {
        keys: (carrier) => [...carrier.keys()],
        get: (carrier, key) => carrier.get(key) || undefined,
      });
