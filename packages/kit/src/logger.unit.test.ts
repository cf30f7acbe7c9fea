import { context, TraceFlags, trace } from "@opentelemetry/api";
import { AsyncLocalStorageContextManager } from "@opentelemetry/context-async-hooks";
import { expect, test } from "vitest";
import { HeraldError } from "./herald-error.ts";
import { createLogger, type Logger } from "./logger.ts";
import { withRequestId } from "./request-context.ts";

/** Distinct values, so that a failure names the leaked one. */
const planted = {
  projectToken: "hpt_3q2-7wAAAAplantedProjectToken",
  deviceCredential: "hdc_3q2-7wAAAAplantedDeviceCredential",
  openToken: "v2.k1.3q2-7wDEVICE.i.1900000000.plantedMacplantedMac",
  apnsToken: "planted0c0ffee00c0ffee00c0ffee00c0ffee00c0ffee00c0ffee00c0ffee0",
  title: "planted title",
  body: "planted body",
  password: "planted-password",
  pem: "-----BEGIN PRIVATE KEY-----\nplantedPem\n-----END PRIVATE KEY-----",
  jwt: "eyJhbGciOiJFUzI1NiJ9.eyJwbGFudGVkIjoxfQ.plantedSignature",
  query: "planted-query",
};
const traces = /planted/i;

const logged = (level: "debug" | "info", write: (log: Logger) => void) => {
  const lines: string[] = [];
  write(createLogger({ service: "gateway", level, destination: { write: (line) => lines.push(line) } }));
  return { text: lines.join(""), lines: lines.map((line) => JSON.parse(line) as Record<string, unknown>) };
};

test("a line has time, level, service and message", () => {
  const { lines } = logged("info", (log) => log.info({ deviceId: "dev_1", ms: 3 }, "did it"));
  expect(lines).toEqual([
    {
      level: "info",
      time: expect.stringMatching(/^\d{4}-.*Z$/),
      service: "gateway",
      deviceId: "dev_1",
      ms: 3,
      msg: "did it",
    },
  ]);
});

test("a line below the level is not written", () => {
  expect(logged("info", (log) => log.debug("quiet")).text).toBe("");
});

test.each<[string, (log: Logger) => void]>([
  ["by name", (log) => log.info({ token: planted.apnsToken, title: planted.title, body: planted.body }, "x")],
  [
    "by other spellings",
    (log) =>
      log.info({ pushToken: planted.apnsToken, admin_token: planted.apnsToken, "set-cookie": planted.password }, "x"),
  ],
  ["in lists", (log) => log.info({ tokens: [planted.apnsToken], devices: [{ token: planted.apnsToken }] }, "x")],
  ["deep inside", (log) => log.info({ a: { b: { c: { d: { secret: planted.password } } } } }, "x")],
  [
    "deeper than a line is",
    (log) => log.info({ a: { b: { c: { d: { e: { f: { g: { h: planted.title } } } } } } } }, "x"),
  ],
  ["headers", (log) => log.info({ headers: { authorization: `Bearer ${planted.apnsToken}` } }, "x")],
  [
    "a request",
    (log) => log.info({ request: { authorization: planted.apnsToken, url: `/open?token=${planted.query}` } }, "x"),
  ],
  [
    "provider settings",
    (log) =>
      log.info(
        {
          settings: {
            private_key: planted.pem,
            service_account: { private_key: planted.pem },
            auth: planted.password,
            p256dh: planted.password,
          },
        },
        "x",
      ),
  ],
  ["app data", (log) => log.info({ metadata: { plan: planted.title }, identifiers: { mail: planted.title } }, "x")],
  [
    "a child's bindings",
    (log) => log.child({ token: planted.apnsToken, deep: { password: planted.password } }).info("x"),
  ],
  ["a grandchild's bindings", (log) => log.child({ a: 1 }).child({ token: planted.apnsToken }).info("x")],
  [
    "later bindings",
    (log) => {
      const child = log.child({ a: 1 });
      child.setBindings({ token: planted.apnsToken });
      child.info("x");
    },
  ],
  [
    "an error's properties",
    (log) =>
      log.error(
        {
          err: Object.assign(new Error("bad"), {
            body: planted.body,
            keyValue: { token: planted.apnsToken },
            config: { url: planted.query },
          }),
        },
        "x",
      ),
  ],
  [
    "an error's cause",
    (log) =>
      log.error(
        { err: new Error("bad", { cause: Object.assign(new Error("worse"), { document: planted.body }) }) },
        "x",
      ),
  ],
  [
    "an error among others",
    (log) => log.error({ failures: [Object.assign(new Error("bad"), { document: planted.body })] }, "x"),
  ],
  ["an error alone", (log) => log.error(Object.assign(new Error("bad"), { body: planted.body }))],
  [
    "a duplicate key error",
    (log) =>
      log.error(
        {
          err: new Error(
            `E11000 duplicate key error collection: x index: y dup key: { token: "${planted.apnsToken}" }`,
          ),
        },
        "x",
      ),
  ],
  [
    "a parser's excerpt",
    (log) => {
      try {
        JSON.parse(`{"token": ${planted.apnsToken}}`);
      } catch (error) {
        log.error({ err: error }, "x");
      }
    },
  ],
  [
    "a parser's excerpt in a message",
    (log) => {
      try {
        JSON.parse(planted.title);
      } catch (error) {
        log.error(error as Error);
      }
    },
  ],
  [
    "tokens in a message",
    (log) => log.info(`${planted.projectToken} and ${planted.deviceCredential} and ${planted.openToken}`),
  ],
  [
    "tokens under a harmless name",
    (log) => log.info({ detail: `got ${planted.projectToken}`, why: planted.openToken, who: planted.jwt }, "x"),
  ],
  ["a bearer in a message", (log) => log.info(`authorization: Bearer ${planted.apnsToken}`)],
  [
    "a URL's password and query",
    (log) =>
      log.info(
        { detail: `mongodb://herald:${planted.password}@db:27017/?x=${planted.query}` },
        `GET http://a/b?token=${planted.query}`,
      ),
  ],
  ["a key in a message", (log) => log.info({ detail: planted.pem }, planted.pem)],
  ["bytes", (log) => log.info({ data: Buffer.from(planted.body) }, "x")],
  ["a map behind toJSON", (log) => log.info({ thing: { toJSON: () => ({ token: planted.apnsToken }) } }, "x")],
])("nothing planted is read: %s", (_name, write) => {
  const { text, lines } = logged("info", write);
  expect(lines).toHaveLength(1);
  expect(text).not.toMatch(traces);
});

test("keeps ids, hashes, counts, codes and stacks of failures", () => {
  const error = Object.assign(new Error("socket hang up"), { code: "ECONNRESET" });
  const { lines } = logged("info", (log) =>
    log.error({ tokenHash: "abc", tokenId: "tok_1", tokens: 5, url: "https://push.example/send", err: error }, "x"),
  );
  expect(lines[0]).toMatchObject({
    tokenHash: "abc",
    tokenId: "tok_1",
    tokens: 5,
    url: "https://push.example/send",
    err: {
      type: "Error",
      message: "socket hang up",
      code: "ECONNRESET",
      stack: expect.stringContaining("logger.unit.test"),
    },
  });
});

test("a refusal is logged without a stack", () => {
  const { lines } = logged("info", (log) =>
    log.info({ err: new HeraldError("topic-not-found", "id: topic not found") }, "x"),
  );
  expect(lines[0]?.err).toEqual({ type: "HeraldError", message: "id: topic not found", code: "topic-not-found" });
});

test("limits the depth and width of a line", () => {
  const circle: Record<string, unknown> = {};
  circle.self = circle;
  const { text } = logged("info", (log) =>
    log.info({ circle, wide: Array.from({ length: 10_000 }, (_, index) => index) }, "x"),
  );
  expect(text.length).toBeLessThan(2_000);
});

test("request id and trace come from the context", () => {
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
  const span = {
    traceId: "0af7651916cd43dd8448eb211c80319c",
    spanId: "b7ad6b7169203331",
    traceFlags: TraceFlags.SAMPLED,
  };
  const { lines } = logged("info", (log) => {
    context.with(trace.setSpanContext(context.active(), span), () => withRequestId("req-1", () => log.info("inside")));
    log.info("outside");
  });
  expect(lines[0]).toMatchObject({ requestId: "req-1", traceId: span.traceId, spanId: span.spanId });
  expect(lines[1]).not.toHaveProperty("requestId");
  expect(lines[1]).not.toHaveProperty("traceId");
  context.disable();
});

test("a line has nothing in that a terminal acts on, and says the same", () => {
  const strange = "a\u001b[2Jb\u009b2Jc\u202ed\u2028e\u{e0041}f";
  const { text, lines } = logged("info", (log) => log.info({ reason: strange }, strange));
  expect(text.trimEnd()).not.toMatch(/[\p{Cc}\p{Cf}\u2028\u2029]/u);
  expect(lines[0]).toMatchObject({ reason: strange, msg: strange });
});
