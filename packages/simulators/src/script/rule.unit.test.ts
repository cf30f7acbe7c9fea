import { readFile } from "node:fs/promises";
import { describe, expect, it } from "vitest";
import { InvalidScript, parseScript, resetCode } from "./rule.ts";

const errorsOf = (body: unknown): readonly string[] => {
  try {
    parseScript(body);
  } catch (error) {
    if (error instanceof InvalidScript) return error.errors;
    throw error;
  }
  return [];
};

describe("a script is accepted", () => {
  const right: unknown[] = [
    [],
    { rules: [] },
    { rules: [{ status: 200 }], seed: 7 },
    [
      {
        provider: "apns",
        tokenPrefix: "ab",
        share: 0.5,
        times: 3,
        status: 410,
        reason: "Unregistered",
        timestamp: 1,
        delayMs: 10,
      },
    ],
    [{ provider: "apns", status: 429, headers: { "retry-after": "30" } }],
    [{ provider: "apns", status: 418, body: "teapot" }],
    [{ provider: "fcm", status: 418 }],
    [{ provider: "webpush", known: "ntfy-no-subscriber", times: 2, delayMs: 5 }],
    [{ rst: "CANCEL" }, { rst: 8 }, { rst: "CANCEL", status: 200 }],
    [
      { hang: true, delayMs: 5 },
      { closeSocket: true, status: 200 },
    ],
    [{ provider: "apns", goaway: 50, times: 2, reason: "Shutdown" }],
    [{ oneStreamStart: true }],
    [{ goaway: 50, oneStreamStart: true, delayMs: 5 }],
    [{ hang: false, status: 503 }],
  ];
  it.each(right)("%j", (body) => expect(errorsOf(body)).toEqual([]));
});

describe("a script is refused", () => {
  const wrong: [unknown, RegExp][] = [
    ["503", /^script: /],
    [null, /^script: /],
    [{}, /^rules: /],
    [{ rules: [], speed: 1 }, /^script: .*speed/],
    [[{ statsu: 503, delayMs: 1 }], /^rules\.0: .*statsu/],
    [[{ provider: "gcm", status: 503 }], /^rules\.0\.provider: /],
    [[{ tokenPrefix: "", status: 503 }], /^rules\.0\.tokenPrefix: /],
    [[{ share: 1.1, status: 503 }], /^rules\.0\.share: /],
    [[{ share: -0.1, status: 503 }], /^rules\.0\.share: /],
    [[{ times: 0, status: 503 }], /^rules\.0\.times: /],
    [[{ times: 1.5, status: 503 }], /^rules\.0\.times: /],
    [[{ status: 99 }], /^rules\.0\.status: /],
    [[{ status: 503, headers: { "Retry-After": "1" } }], /^rules\.0\.headers.*lower-case/],
    [[{ status: 503, headers: { ":status": "1" } }], /^rules\.0\.headers/],
    [[{ delayMs: -1 }], /^rules\.0\.delayMs: /],
    [[{ goaway: 0 }], /^rules\.0\.goaway: /],
    [[{ rst: "NOPE" }], /^rules\.0\.rst: /],
    [[{}], /^rules\.0: does nothing/],
    [[{ provider: "apns", times: 1 }], /^rules\.0: does nothing/],
    [[{ hang: true, status: 200 }], /^rules\.0\.hang: cannot be together/],
    [[{ provider: "webpush", known: "ntfy" }], /^rules\.0\.known: .*ntfy-no-subscriber/],
    [[{ provider: "fcm", known: "ntfy-no-subscriber" }], /^rules\.0\.known: is for webpush/],
    [[{ provider: "webpush", known: "ntfy-no-subscriber", status: 507 }], /^rules\.0\.known: .*leave those out/],
    [[{ rst: 8, closeSocket: true }], /^rules\.0\.rst: cannot be together/],
    [[{ delayMs: 1, reason: "Shutdown" }], /^rules\.0\.reason: needs/],
    [[{ delayMs: 1, headers: {} }], /^rules\.0\.headers: needs/],
    [[{ delayMs: 1, body: "" }], /^rules\.0\.body: needs/],
    [[{ status: 400, timestamp: 1 }], /^rules\.0\.timestamp: needs/],
    [[{ goaway: 50, share: 0.5 }], /^rules\.0\.goaway: speaks of a whole connection/],
    [[{ oneStreamStart: true, times: 1 }], /^rules\.0\.oneStreamStart: speaks of a whole connection/],
    [[{ provider: "apns", status: 418 }], /^rules\.0\.status: APNs answers one of 200, 400/],
    [
      [{ provider: "apns", status: 410, reason: "BadDeviceToken" }],
      /^rules\.0\.reason: .*410: ExpiredToken, Unregistered/,
    ],
  ];
  it.each(wrong)("%j", (body, message) => {
    const errors = errorsOf(body);
    expect(errors).toHaveLength(1);
    expect(errors[0]).toMatch(message);
  });

  it("with every problem of every rule at once", () => {
    const errors = errorsOf([
      { status: 99, share: 2 },
      { hang: true, status: 200, timestamp: 3 },
      { status: 200 },
      { delayMs: 1, nothing: 1 },
    ]);
    expect(errors.map((error) => error.split(":", 1)[0])).toEqual([
      "rules.0.share",
      "rules.0.status",
      "rules.1.hang",
      "rules.1.timestamp",
      "rules.3",
    ]);
  });
});

it("knows the reset codes by name and number", () => {
  expect([resetCode("REFUSED_STREAM"), resetCode("ENHANCE_YOUR_CALM"), resetCode(5)]).toEqual([7, 11, 5]);
});

it("is what the README shows", async () => {
  const readme = await readFile(new URL("../../README.md", import.meta.url), "utf8");
  const example = /```json\n([\s\S]*?)```/.exec(readme)?.[1];
  expect(errorsOf(JSON.parse(example ?? ""))).toEqual([]);
});
