import { describe, expect, it, test } from "vitest";
import { createScript } from "./script.ts";

const scripted = (body: unknown) => {
  const script = createScript();
  script.replace(body);
  return script;
};
const tokens = Array.from({ length: 1000 }, (_, n) => `token-${n}`);

describe("which rule decides", () => {
  it("is none of an empty script", () => {
    expect(createScript().match("apns", "a")).toBeUndefined();
  });

  it("is the first that matches provider and prefix", () => {
    const script = scripted([
      { provider: "fcm", status: 404 },
      { tokenPrefix: "dead", status: 410 },
      { provider: "apns", status: 503 },
    ]);
    expect(script.match("apns", "deadbeef")?.status).toBe(410);
    expect(script.match("apns", "beef")?.status).toBe(503);
    expect(script.match("fcm", "deadbeef")?.status).toBe(404);
    expect(script.match("webpush", "beef")).toBeUndefined();
  });

  it("looks for the prefix in the other name too", () => {
    const script = scripted([{ tokenPrefix: "slow-", delayMs: 1 }]);
    expect(script.match("webpush", "https://push.example/slow-1", "slow-1")?.delayMs).toBe(1);
    expect(script.match("webpush", "https://push.example/slow-1", "fast-1")).toBeUndefined();
  });

  it("passes over a rule that is spent", () => {
    const script = scripted([{ times: 2, status: 503 }, { status: 429 }]);
    expect([1, 2, 3].map(() => script.match("apns", "a")?.status)).toEqual([503, 503, 429]);
    expect(script.show().rules).toEqual([
      { times: 2, status: 503, used: 2 },
      { status: 429, used: 1 },
    ]);
  });

  it("passes over a rule that only speaks of connections", () => {
    const script = scripted([{ goaway: 50 }, { oneStreamStart: true }, { status: 503 }]);
    expect(script.match("apns", "a")?.status).toBe(503);
  });
});

describe("a share", () => {
  const hit = (body: unknown, order = tokens) => {
    const script = scripted(body);
    return new Set(order.filter((token) => script.match("apns", token) !== undefined));
  };
  const tenth = [{ share: 0.1, status: 503 }];

  it("is about that part of the tokens", () => {
    expect(hit(tenth).size).toBeGreaterThan(60);
    expect(hit(tenth).size).toBeLessThan(140);
    expect(hit([{ share: 0, status: 503 }]).size).toBe(0);
    expect(hit([{ share: 1, status: 503 }]).size).toBe(1000);
  });

  it("is the same in every run, in whatever order the tokens come", () => {
    expect(hit(tenth)).toEqual(hit(tenth));
    expect(hit(tenth, tokens.toReversed())).toEqual(hit(tenth));
  });

  it("differs with another seed", () => {
    expect(hit({ rules: tenth, seed: 2 })).not.toEqual(hit({ rules: tenth, seed: 1 }));
  });

  it("is drawn again for each attempt, so that a retry can fare better", () => {
    const script = scripted([{ share: 0.5, status: 503 }]);
    const attempts = Array.from({ length: 100 }, () => script.match("apns", "one token") !== undefined);
    expect(new Set(attempts).size).toBe(2);
  });
});

describe("connections", () => {
  it("get a GOAWAY after the given number of streams", () => {
    const script = scripted([{ provider: "apns", goaway: 3 }]);
    expect([1, 2, 3, 4, 5, 6].map((n) => script.goaway("apns", n) !== undefined)).toEqual([
      false,
      false,
      true,
      false,
      false,
      true,
    ]);
    expect(script.goaway("fcm", 3)).toBeUndefined();
  });

  it("start with one stream where a rule says so", () => {
    const script = scripted([{ provider: "apns", oneStreamStart: true }]);
    expect([script.oneStreamStart("apns"), script.oneStreamStart("fcm")]).toEqual([true, false]);
  });
});

it("tells its listeners of a change until they leave", () => {
  const script = createScript();
  let changes = 0;
  const leave = script.onChange(() => {
    changes += 1;
  });
  script.replace([{ status: 503 }]);
  leave();
  script.replace([]);
  expect(changes).toBe(1);
});

it("keeps the old rules when the new ones are wrong", () => {
  const script = scripted([{ status: 503 }]);
  expect(() => script.replace([{ statsu: 200 }])).toThrow();
  expect(script.match("apns", "a")?.status).toBe(503);
});

test("a rule of what is beyond a limit lets a burst pass, and one more each interval", () => {
  let time = 0;
  const limited = createScript(() => time);
  limited.replace([{ provider: "webpush", status: 429, beyond: { burst: 3, everyMs: 1_000 } }]);
  const refused = (count: number) => Array.from({ length: count }, () => limited.match("webpush", "a")?.status === 429);
  expect(refused(5)).toEqual([false, false, false, true, true]);
  time = 1_500;
  expect(refused(2)).toEqual([false, true]);
  time = 2_000;
  expect(refused(2)).toEqual([false, true]);
  time = 60_000;
  expect(refused(4)).toEqual([false, false, false, true]);
});
