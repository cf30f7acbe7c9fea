import { newProjectId } from "@herald/contracts";
import { hasCode } from "@herald/kit";
import { describe, expect, test } from "vitest";
import { readClaims } from "./verify-user-token.ts";

const now = new Date("2030-01-31T09:00:00Z");
const at = now.getTime() / 1_000;
const projectId = newProjectId(now);
const good = { sub: "u_8412", aud: projectId, iat: at - 10, exp: at + 3_600 };

const outcome = (change: Record<string, unknown>): string => {
  try {
    return readClaims({ ...good, ...change }, projectId, now).userId;
  } catch (error) {
    if (hasCode(error, "user-token-invalid")) return error.messages.join();
    throw error;
  }
};

describe("claims that are signed", () => {
  test.each<[string, Record<string, unknown>]>([
    ["as they are meant", {}],
    ["an audience of one", { aud: [projectId] }],
    ["a clock that is 60 s ahead", { iat: at + 60 }],
    ["expired less than 60 s ago", { iat: at - 600, exp: at - 59.9 }],
    ["a life of 24 hours", { iat: at - 60, exp: at - 60 + 86_400 }],
    ["parts of seconds", { iat: at - 0.25 }],
  ])("prove the user: %s", (_, change) => expect(outcome(change)).toBe("u_8412"));

  test.each<[string, Record<string, unknown>, string]>([
    ["another project", { aud: newProjectId(now) }, "`aud`"],
    ["several audiences", { aud: [projectId, "other"] }, "`aud`"],
    ["no audience", { aud: undefined }, "`aud`"],
    ["no subject", { sub: undefined }, "`sub`"],
    ["a number as subject", { sub: 7 }, "`sub`"],
    ["129 characters", { sub: "u".repeat(129) }, "`sub`"],
    ["dots", { sub: ".." }, "`sub`"],
    ["a slash", { sub: "a/b" }, "`sub`"],
    ["not ASCII", { sub: "ü" }, "`sub`"],
    ["no iat", { iat: undefined }, "`iat`"],
    ["no exp", { exp: undefined }, "`exp`"],
    ["a time that is none", { exp: Number.NaN }, "`exp`"],
    ["for ever", { exp: Number.POSITIVE_INFINITY }, "`exp`"],
    ["exp before iat", { exp: at - 11 }, "`exp`"],
    ["a second more than 24 hours", { exp: good.iat + 86_401 }, "24 hours"],
    ["expired 60 s ago", { exp: at - 60, iat: at - 600 }, "expired"],
    ["61 s ahead", { iat: at + 61 }, "future"],
    ["an nbf to come", { nbf: at + 61 }, "future"],
    ["an nbf as text", { nbf: "now" }, "`nbf`"],
  ])("are refused: %s", (_, change, word) => expect(outcome(change)).toContain(word));
});
