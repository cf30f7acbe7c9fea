import { ConfigError, readConfig } from "@herald/kit";
import { describe, expect, test } from "vitest";
import { DispatchConfig } from "./config.ts";

const key = Buffer.alloc(32, 1).toString("base64");
const complete = {
  HERALD_NATS_URL: "nats://127.0.0.1:4222",
  HERALD_MONGO_URL: "mongodb://127.0.0.1:27017",
  HERALD_DISPATCH_MASTER_KEYS: `m1:${key}`,
  HERALD_OPEN_KEYS: `o1:${key}`,
};

const problemsOf = (change: Record<string, string | undefined>): readonly string[] => {
  try {
    readConfig(DispatchConfig, { ...complete, ...change });
    return [];
  } catch (error) {
    if (error instanceof ConfigError) return error.problems;
    throw error;
  }
};

describe("the configuration", () => {
  test("needs addresses and keys, and has a default for the rest", () => {
    expect(readConfig(DispatchConfig, complete)).toMatchObject({
      HERALD_DISPATCH_CUSTOM_ENDPOINTS: false,
      HERALD_DATABASE_PREFIX: "herald",
    });
  });

  test.each([
    ["no master keys", { HERALD_DISPATCH_MASTER_KEYS: undefined }, "HERALD_DISPATCH_MASTER_KEYS: is not set"],
    ["a variable of an older version", { HERALD_DISPATCH_TRANSPORT: "framed" }, "is not a variable of this service"],
    ["a short master key", { HERALD_DISPATCH_MASTER_KEYS: "m1:AAAA" }, "the key m1 must be 32 bytes"],
    ["no open keys", { HERALD_OPEN_KEYS: undefined }, "HERALD_OPEN_KEYS: is not set"],
    [
      "an answer that a stop would not wait for",
      { HERALD_DISPATCH_REQUEST_TIMEOUT: "26s" },
      "accepted: a duration of at least 1s and at most 25s",
    ],
  ])("refuses %s", (_, change, problem) => {
    expect(problemsOf(change)).toEqual([expect.stringContaining(problem)]);
  });

  test("never repeats a key", () => {
    expect(problemsOf({ HERALD_DISPATCH_MASTER_KEYS: `m1:${key},m1:${key}` }).join()).not.toContain(key);
  });
});
