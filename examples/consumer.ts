/**
 * Reads Herald's events, with nothing but NATS credentials. Copy it: it depends on nothing of Herald's.
 *
 *   npm run -s consumer -- add warehouse --project prj_… --event io.herald.notification.opened.v1 > warehouse.env
 *   node --env-file=warehouse.env examples/consumer.ts
 *
 * - It resumes where it stopped, because the durable remembers what was acknowledged; run several and they share the work.
 * - An event may come twice (a crash between handling and acknowledgement), always with the same `ce-id`: handle it so that
 *   a repeat changes nothing. Here the ids are lines of the file `SEEN`, in earnest they are a unique key of your table.
 * - At most `MAX_MESSAGES` events are on their way here: when handling is slow, the rest waits on the server.
 * - A type or a field that a later version of Herald adds is kept as it came: what is stored once can be understood later.
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

/** CloudEvents in binary mode: who and what in the headers, the rest in the body, which is kept even when it is not JSON. */
const eventOf = (message: JsMsg): Event => {
  const header = (name: string) => message.headers?.get(`ce-${name}`) || undefined;
  const [time, source] = [header("time"), header("source")];
  return {
    id: header("id") ?? `${message.info.stream}/${message.seq}`,
    type: header("type") ?? message.subject,
    ...(time && { time }),
    ...(source && { source }),
    data: json(message.string()),
  };
};

const json = (text: string): unknown => {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
};

/** What to do with the types that you know. Each may find fields that it does not know. */
const handlers: Record<string, (event: Event) => void> = {
  "io.herald.notification.opened.v1": (event) => print("opened", event),
};
const print = (what: string, event: Event) => console.log(JSON.stringify({ what, ...event }));

const seen = new Set(SEEN && existsSync(SEEN) ? readFileSync(SEEN, "utf8").split("\n") : []);

const connection = await connect({
  servers: NATS_URL,
  user: NATS_USER,
  pass: NATS_PASSWORD,
  // The user may listen to its own inbox alone.
  inboxPrefix: NATS_INBOX_PREFIX,
  maxReconnectAttempts: -1,
});
const consumer = await jetstream(connection).consumers.get(NATS_STREAM, NATS_DURABLE);
const messages = await consumer.consume({ max_messages: Number(MAX_MESSAGES) });

for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => void messages.close());

console.error(`listening to ${NATS_DURABLE} on ${NATS_URL}`);
for await (const message of messages) {
  const event = eventOf(message);
  if (!seen.has(event.id)) {
    (handlers[event.type] ?? ((one) => print("kept", one)))(event);
    seen.add(event.id);
    if (SEEN) appendFileSync(SEEN, `${event.id}\n`);
  }
  if (Number(SLOWLY_MS) > 0) await sleep(Number(SLOWLY_MS));
  // Only now: what was not acknowledged comes again.
  message.ack();
}
await connection.drain();
