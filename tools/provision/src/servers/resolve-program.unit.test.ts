import { describe, expect, test } from "vitest";
import { firstThatAnswers } from "./resolve-program.ts";

const no = (why: string) => async () => ({ why });
const yes = (found: string, why: string) => async () => ({ found, why });

describe("the steps", () => {
  test("stop at the first step that answers and keeps every reason until then", async () => {
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
  });
});
