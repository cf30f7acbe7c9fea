import { failSpan, inSpan } from "@herald/kit";
import type { MsgHdrs } from "@nats-io/transport-node";
import { type Context, propagation, ROOT_CONTEXT, type Span, trace } from "@opentelemetry/api";
import type { Step } from "../delivery-batch.ts";

const read = {
  keys: (carrier: MsgHdrs) => carrier.keys(),
  get: (carrier: MsgHdrs, key: string) => carrier.get(key) || undefined,
};

type Carrier = { readonly headers?: MsgHdrs | undefined };

/**
 * Runs `work` in a span that links the producer of every message. The span of a single message also continues its trace, so that one
 * trace goes from the HTTP request to the provider; a batch begins a trace of its own.
 */
export const withRemoteSpan = <Result>(
  name: string,
  kind: "consumer" | "server",
  messages: readonly Carrier[],
  work: (span: Span) => Promise<Result>,
): Promise<Result> => {
  const [first] = messages;
  const parent = messages.length === 1 ? originOf(first) : ROOT_CONTEXT;
  return inSpan(name, { kind, parent }, (span) => {
    // Reading a header parses all of them: skip that when the span is not recorded.
    if (span.isRecording())
      span.addLinks(
        messages.flatMap((message) => {
          const producer = trace.getSpanContext(originOf(message));
          return producer === undefined ? [] : [{ context: producer }];
        }),
      );
    return work(span);
  });
};

const originOf = ({ headers }: Carrier = {}): Context =>
  headers === undefined ? ROOT_CONTEXT : propagation.extract(ROOT_CONTEXT, headers, read);

/** A consumer span for each batch, from its start to its settlement. */
export const traced: Step = ({ handler, tasks, permit }, next) =>
  withRemoteSpan(
    `process ${handler.pattern}`,
    "consumer",
    tasks.map(({ received }) => received),
    async (span) => {
      const settlement = await next();
      span.setAttributes({
        "messaging.system": "nats",
        "messaging.operation.name": "process",
        "messaging.operation.type": "process",
        "messaging.destination.template": handler.pattern,
        "messaging.consumer.group.name": handler.durable,
        "messaging.batch.message_count": tasks.length,
        "herald.outcome": settlement.kind,
        "herald.holds": permit.holds(),
      });
      if (settlement.kind === "dead_lettered" || settlement.kind === "retried")
        failSpan(span, "error" in settlement ? settlement.error : undefined);
      return settlement;
    },
  );
