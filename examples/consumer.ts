/**
 * Reads Herald's events with NATS credentials alone. Copy it: it does not depend on Herald's packages.
 *
 *   npm run -s consumer -- add warehouse --project prj_… --event io.herald.notification.opened.v1 > warehouse.env
 *   node --env-file=warehouse.env examples/consumer.ts
 *
 * - It resumes where it stopped, because the durable stores which events were acknowledged. Several instances share the work.
 * - Events of one type that happen within the same 50 ms share a message, up to 100 of them: acknowledge it after the last one.
 * - An event may come twice (after a crash between handling and acknowledgement), always with the same id: make handling
 *   idempotent. Here the ids are lines of the file `SEEN`; in production make them a unique key of your table.
 * - At most `MAX_MESSAGES` messages are in flight: if handling is slow, the rest waits on the server.
 * - Types and fields that later versions of Herald add are kept unchanged, so you can use stored events later.
 */
import { appendFileSync, existsSync, readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { type JsMsg, jetstream } from "@nats-io/jetstream";
import { connect } from "@nats-io/transport-node";

const {
  NATS_URL = "nats://127.0.0.1:4222",
  NATS_USER = "analytics",
  NATS_PASSWORD = "",
  NATS_STREAM = "PUSH_EVENTS",
  NATS_DURABLE = "consumers-opens",
  NATS_INBOX_PREFIX = "_INBOX_analytics",
  SEEN = "",
  MAX_MESSAGES = "100",
  SLOWLY_MS = "0",
} = process.env;

type Event = { id: string; type: string; time?: string; source?: string; data: unknown };

/**
 * Parses CloudEvents. One alone is in binary mode: attributes in the headers, data in the body, which is kept even if it is not JSON.
 * Several are a JSON batch: an array of objects with attributes and data.
 */
const eventsOf = (message: JsMsg): Event[] => {
  if (message.headers?.get("content-type") === "application/cloudevents-batch+json") return message.json<Event[]>();
  const header = (name: string) => message.headers?.get(`ce-${name}`) || undefined;
  const [time, source] = [header("time"), header("source")];
  return [
    {
      id: header("id") ?? `${message.info.stream}/${message.seq}`,
      type: header("type") ?? message.subject,
      ...(time && { time }),
      ...(source && { source }),
      data: json(message.string()),
    },
  ];
};

const json = (text: string): unknown => {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
};

/** Handlers of the types that you know. Events may have fields that you do not know. */
const handlers: Record<string, (event: Event) => void> = {
  "io.herald.notification.opened.v1": (event) => print("opened", event),
};
const print = (what: string, event: Event) => console.log(JSON.stringify({ what, ...event }));

const seen = new Set(SEEN && existsSync(SEEN) ? readFileSync(SEEN, "utf8").split("\n") : []);

const connection = await connect({
  servers: NATS_URL,
  user: NATS_USER,
  pass: NATS_PASSWORD,
  // This NATS user may subscribe only to its own inbox.
  inboxPrefix: NATS_INBOX_PREFIX,
  maxReconnectAttempts: -1,
});
const consumer = await jetstream(connection).consumers.get(NATS_STREAM, NATS_DURABLE);
const messages = await consumer.consume({ max_messages: Number(MAX_MESSAGES) });

for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => void messages.close());

console.error(`listening to ${NATS_DURABLE} on ${NATS_URL}`);
for await (const message of messages) {
  for (const event of eventsOf(message)) {
    if (seen.has(event.id)) continue;
    (handlers[event.type] ?? ((one) => print("kept", one)))(event);
    seen.add(event.id);
    if (SEEN) appendFileSync(SEEN, `${event.id}\n`);
    if (Number(SLOWLY_MS) > 0) await sleep(Number(SLOWLY_MS));
    // Restarts the ack wait of 30 s, because all events of a message may take longer.
    message.working();
  }
  // Acknowledge only after handling: NATS redelivers unacknowledged messages.
  message.ack();
}
await connection.drain();
