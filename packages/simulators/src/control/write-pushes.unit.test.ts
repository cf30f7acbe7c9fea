import type { AddressInfo } from "node:net";
import express from "express";
import { expect, test } from "vitest";
import type { Push } from "../push-log.ts";
import { writePushes } from "./write-pushes.ts";

test("a list that is longer than what the client reads at once comes whole, and leaves no listeners behind", async () => {
  const push = { provider: "apns", token: "a".repeat(64), payload: { text: "x".repeat(1_000) } } as unknown as Push;
  const pushes = Array.from({ length: 15_000 }, () => push);
  const listeners: number[] = [];
  const app = express();
  app.get("/", async (_request, response) => {
    const before = response.listenerCount("close");
    await writePushes(response, pushes, { next: 7 });
    listeners.push(response.listenerCount("close") - before, response.listenerCount("drain"));
  });
  const server = app.listen(0, "127.0.0.1");
  await new Promise((resolve) => server.once("listening", resolve));
  const answer = await fetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`);
  const { data, next } = (await answer.json()) as { data: unknown[]; next: number };
  expect({ count: data.length, next }).toEqual({ count: 15_000, next: 7 });
  expect(listeners).toEqual([0, 0]);
  await new Promise((resolve) => server.close(resolve));
});
