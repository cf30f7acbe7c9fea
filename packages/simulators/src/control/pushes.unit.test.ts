import type { AddressInfo } from "node:net";
import express from "express";
import { expect, test } from "vitest";
import type { Push } from "../types.ts";
import { writePushes } from "./pushes.ts";

test("a list that is longer than what the client reads at once comes whole, and the waits for the client leave no listeners behind", async () => {
  const push = { provider: "apns", token: "a".repeat(64), payload: { text: "x".repeat(1_000) } } as unknown as Push;
  const pushes = Array.from({ length: 15_000 }, () => push);
  const listeners = { close: 0, drain: 0 };
  const app = express();
  app.get("/", async (_request, response) => {
    const before = response.listenerCount("close");
    await writePushes(response, pushes, { next: 7 });
    listeners.close = response.listenerCount("close") - before;
    listeners.drain = response.listenerCount("drain");
  });
  const server = app.listen(0, "127.0.0.1");
  await new Promise((resolve) => server.once("listening", resolve));
  const answer = await fetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`);
  const { data, next } = (await answer.json()) as { data: unknown[]; next: number };
  expect({ count: data.length, next }).toEqual({ count: 15_000, next: 7 });
  expect(listeners.drain).toBe(0);
  // Node's own for one stream. There are many more waits.
  expect(listeners.close).toBeLessThan(10);
  await new Promise((resolve) => server.close(resolve));
});
