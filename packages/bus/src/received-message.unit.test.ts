import type { Msg } from "@nats-io/transport-node";
import { expect, test } from "vitest";
import { toReceived } from "./received-message.ts";

const message = (reply: string | undefined) => {
  const sent: string[] = [];
  const msg = {
    subject: "push.cmd.v1.x",
    data: new Uint8Array(10),
    headers: undefined,
    reply,
    respond: (text: string) => sent.push(text),
  };
  return { received: () => toReceived(msg as unknown as Msg), sent };
};

test.each([
  "$JS.ACK.PUSH_CMD.dispatch-start.3.42.7.1767225600123456789.5",
  "$JS.ACK._.hash.PUSH_CMD.dispatch-start.3.42.7.1767225600123456789.5.random",
  "$JS.ACK.domain.hash.PUSH_CMD.dispatch-start.3.42.7.1767225600123456789.5",
])("reads %s", (reply) => {
  const received = message(reply).received();
  expect(received).toMatchObject({ stream: "PUSH_CMD", sequence: 42, deliveryCount: 3, key: "42/1767225600123456789" });
  expect(received.publishedAt.toISOString()).toBe("2026-01-01T00:00:00.123Z");
});

test.each([undefined, "", "_INBOX.a.b", "$JS.ACK.PUSH_CMD.x.1", "$JS.FC.PUSH_CMD.dispatch-start.3.42.7.17.5"])(
  "refuses %s, which is no delivery",
  (reply) => {
    expect(message(reply).received).toThrow(TypeError);
  },
);

test("settles in the broker's syntax, with delays in nanoseconds", () => {
  const { received, sent } = message("$JS.ACK.S.c.1.2.3.4.5");
  const one = received();
  one.ack();
  one.nak(250.4);
  one.working();
  one.term("schema");
  expect(sent).toEqual(["+ACK", '-NAK {"delay":250400000}', "+WPI", "+TERM schema"]);
});
