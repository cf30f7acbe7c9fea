import { IncomingMessage, ServerResponse } from "node:http";
import { Socket } from "node:net";
import { expect, test } from "vitest";
import { createHeldBytes } from "./held-bytes.ts";

const open = (held: ReturnType<typeof createHeldBytes>, address: string, socket = new Socket()) => {
  const request = new IncomingMessage(socket);
  const response = new ServerResponse(request);
  return { hold: held.holdFor(request, response, address), response, socket };
};

test("one address may hold its share, all together no more than there is", () => {
  const held = createHeldBytes({ most: 100, perAddress: 60 });
  const [one, again, other] = [open(held, "a"), open(held, "a"), open(held, "b")];
  one.hold(30);
  again.hold(30);
  expect(() => one.hold(1)).toThrow(expect.objectContaining({ code: "rate-limited", retryAfterSeconds: 1 }));
  other.hold(40);
  expect(() => other.hold(1)).toThrow(expect.objectContaining({ code: "overloaded", retryAfterSeconds: 1 }));
  expect(held.held()).toBe(100);
});

test("what a request holds is given back once, with its response or with its connection", () => {
  const held = createHeldBytes({ most: 100, perAddress: 100 });
  const [one, other] = [open(held, "a"), open(held, "a")];
  one.hold(40);
  other.hold(60);
  one.response.emit("close");
  one.socket.emit("close");
  expect(held.held()).toBe(60);
  // Behind another response on its connection, it never had that connection to itself.
  other.socket.emit("close");
  expect(held.held()).toBe(0);
  expect(other.socket.listenerCount("close")).toBe(one.socket.listenerCount("close"));
});

test("a request whose connection is gone holds nothing any more", () => {
  const held = createHeldBytes({ most: 100, perAddress: 100 });
  const { hold, response } = open(held, "a");
  response.emit("close");
  expect(() => hold(1)).toThrow(expect.objectContaining({ code: "malformed-request" }));
  expect(held.held()).toBe(0);
});
