import { IncomingMessage, ServerResponse } from "node:http";
import { Socket } from "node:net";
import { expect, test } from "vitest";
import { createMemoryLimit } from "./address-limits.ts";

const open = (limit: ReturnType<typeof createMemoryLimit>, address: string, socket = new Socket()) => {
  const request = new IncomingMessage(socket);
  const response = new ServerResponse(request);
  return { reserve: limit.forRequest(request, response, address), response, socket };
};

test("limits the memory of one address, and of all together", () => {
  const limit = createMemoryLimit({ maxBytes: 100, maxPerAddress: 60 });
  const [one, again, other] = [open(limit, "a"), open(limit, "a"), open(limit, "b")];
  one.reserve(30);
  again.reserve(30);
  expect(() => one.reserve(1)).toThrow(expect.objectContaining({ code: "rate-limited", retryAfterSeconds: 1 }));
  other.reserve(40);
  expect(() => other.reserve(1)).toThrow(expect.objectContaining({ code: "overloaded", retryAfterSeconds: 1 }));
  expect(limit.used()).toBe(100);
});

test("however many addresses take what they may, the next one finds room", () => {
  const limit = createMemoryLimit({ maxBytes: 1_000, maxPerAddress: 250 });
  for (const address of ["a", "b", "c", "d"]) {
    const { reserve } = open(limit, address);
    expect(() => {
      for (;;) reserve(1);
    }).toThrow(expect.objectContaining({ retryAfterSeconds: 1 }));
  }
  const next = open(limit, "e");
  for (let bytes = 0; bytes < 40; bytes++) next.reserve(1);
});

test("releases a request's memory once, with its response or its connection", () => {
  const limit = createMemoryLimit({ maxBytes: 200, maxPerAddress: 100 });
  const [one, other] = [open(limit, "a"), open(limit, "a")];
  one.reserve(40);
  other.reserve(60);
  one.response.emit("close");
  one.socket.emit("close");
  expect(limit.used()).toBe(60);
  // A response that waits behind another on its connection gets no close event: only the socket's close releases its memory.
  other.socket.emit("close");
  expect(limit.used()).toBe(0);
  expect(other.socket.listenerCount("close")).toBe(one.socket.listenerCount("close"));
});

test("a request on a closed connection reserves nothing", () => {
  const limit = createMemoryLimit({ maxBytes: 100, maxPerAddress: 100 });
  const { reserve, response } = open(limit, "a");
  response.emit("close");
  expect(() => reserve(1)).toThrow(expect.objectContaining({ code: "malformed-request" }));
  expect(limit.used()).toBe(0);
});
