import { jetstream, jetstreamManager } from "@nats-io/jetstream";
import { connect } from "@nats-io/transport-node";
import type { Broker } from "./start-broker.ts";

export type StreamMessage = {
  sequence: number;
  subject: string;
  /** Unchanged names, with the first of several values. */
  headers: Record<string, string>;
  body: string;
};

/** All messages of a stream, oldest first, without consuming or acking them. */
export async function readStream(
  broker: Pick<Broker, "url" | "user" | "password">,
  stream: string,
  filter = ">",
): Promise<StreamMessage[]> {
  const { url, user, password } = broker;
  const connection = await connect({ servers: url.split(","), ...(user && { user, pass: password ?? "" }) });
  try {
    const manager = await jetstreamManager(connection);
    const { state } = await manager.streams.info(stream, { subjects_filter: filter });
    const matching = Object.values(state.subjects ?? {}).reduce((sum, count) => sum + count, 0);
    const found: StreamMessage[] = [];
    if (matching === 0) return found;
    const consumer = await jetstream(connection).consumers.get(stream, { filter_subjects: filter });
    for await (const message of await consumer.consume()) {
      const headers = Object.fromEntries([...(message.headers ?? [])].map(([name, [value = ""]]) => [name, value]));
      found.push({ sequence: message.seq, subject: message.subject, headers, body: message.string() });
      if (message.info.pending === 0) break;
    }
    return found;
  } finally {
    await connection.close();
  }
}

/** The events of the stream as if each had come alone: those of a batch have the headers of binary mode, without the broker's. */
export async function readPublished(
  broker: Pick<Broker, "url" | "user" | "password">,
  filter?: string,
): Promise<StreamMessage[]> {
  const messages = await readStream(broker, "PUSH_EVENTS", filter);
  return messages.flatMap((message) => {
    if (message.headers["content-type"] !== "application/cloudevents-batch+json") return message;
    const events = JSON.parse(message.body) as ({ data: unknown } & Record<string, string>)[];
    return events.map(({ data, requestid, traceparent, ...attributes }) => ({
      ...message,
      headers: {
        ...Object.fromEntries(Object.entries(attributes).map(([name, value]) => [`ce-${name}`, value])),
        "content-type": "application/json",
        ...(requestid && { "Herald-Request-Id": requestid }),
        ...(traceparent && { traceparent }),
      },
      body: JSON.stringify(data),
    }));
  });
}
