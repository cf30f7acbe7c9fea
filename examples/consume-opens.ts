/**
 * Prints every open as it happens, with nothing but NATS credentials. Copy it: it depends on nothing of Herald's.
 *
 *   NATS_URL=nats://127.0.0.1:14222 NATS_USER=analytics NATS_PASSWORD=… node examples/consume-opens.ts
 *
 * It resumes where it stopped, because the durable remembers; run several and they share the work. An open may come twice
 * (a crash between handling and ack), always with the same `ce-id`: store that, and a repeat changes nothing.
 */
import { jetstream } from "@nats-io/jetstream";
import { connect } from "@nats-io/transport-node";

const {
  NATS_URL = "nats://127.0.0.1:4222",
  NATS_USER = "analytics",
  NATS_PASSWORD = "",
  NATS_STREAM = "PUSH_EVENTS",
  NATS_DURABLE = "consumers-opens",
  NATS_INBOX_PREFIX = "_INBOX_analytics",
} = process.env;

const connection = await connect({
  servers: NATS_URL,
  user: NATS_USER,
  pass: NATS_PASSWORD,
  // The user may listen to its own inbox alone.
  inboxPrefix: NATS_INBOX_PREFIX,
  maxReconnectAttempts: -1,
});
const consumer = await jetstream(connection).consumers.get(NATS_STREAM, NATS_DURABLE);
// At most so many are on their way here: that is the back-pressure.
const messages = await consumer.consume({ max_messages: 100 });

for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => void messages.close());

console.error(`listening to ${NATS_DURABLE} on ${NATS_URL}`);
for await (const message of messages) {
  const open = message.json<{ projectId: string; notificationId: string; deviceId: string; openedAt: string }>();
  // Unknown fields are kept: a later version may add some.
  console.log(JSON.stringify({ id: message.headers?.get("ce-id"), type: message.headers?.get("ce-type"), ...open }));
  message.ack();
}
await connection.drain();
