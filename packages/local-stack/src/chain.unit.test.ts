import { describe, expect, test } from "vitest";
import { firstThatAnswers, nothingAnswered, sourceOf } from "./chain.ts";

const no = (why: string) => async () => ({ why });
const yes = (found: string, why: string) => async () => ({ found, why });

describe("the chain", () => {
  test("stops at the first step that answers and keeps every reason until then", async () => {
    const asked: string[] = [];
    const { choice, attempts } = await firstThatAnswers<string>([
      { step: "environment", ask: no("not set") },
      { step: "docker", ask: async () => Promise.reject(new Error("no engine")) },
      { step: "path", ask: yes("/bin/x", "x 3") },
      {
        step: "cache",
        ask: async () => {
          asked.push("cache");
          return { found: "y", why: "y" };
        },
      },
    ]);
    expect(choice).toBe("/bin/x");
    expect(attempts).toEqual([
      { step: "environment", chosen: false, why: "not set" },
      { step: "docker", chosen: false, why: "no engine" },
      { step: "path", chosen: true, why: "x 3" },
    ]);
    expect(asked).toEqual([]);
    expect(sourceOf(attempts)).toEqual({ step: "path", why: "x 3" });
  });

  test("ends in an error that lists what was tried and what helps", async () => {
    const { choice, attempts } = await firstThatAnswers<string>([
      { step: "environment", ask: no("not set") },
      { step: "path", ask: no("not on PATH") },
    ]);
    expect(choice).toBeUndefined();
    expect(nothingAnswered("A broker", attempts, "This helps: do it").message).toBe(
      [
        "A broker: nothing on this machine can provide it. Tried:",
        "  environment not set",
        "  path        not on PATH",
        "This helps: do it",
      ].join("\n"),
    );
    expect(() => sourceOf(attempts)).toThrow("no step was chosen");
  });
});
