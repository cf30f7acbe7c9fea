import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { z } from "zod";
import { parseMasterKeys } from "../envelope/envelope.ts";
import { ConfigError, readConfig } from "./read-config.ts";
import { httpConfig, logConfig, mongoConfig, natsConfig, proxyConfig, telemetryConfig } from "./shared-blocks.ts";
import * as variables from "./variables.ts";

const problemsOf = (schema: z.ZodType, env: Record<string, string | undefined>): readonly string[] => {
  try {
    readConfig(schema, env);
  } catch (error) {
    if (error instanceof ConfigError) return error.problems;
    throw error;
  }
  throw new Error("the configuration was accepted");
};

const read = (schema: z.ZodType, value: string) => readConfig(z.object({ HERALD_X_V: schema }), { HERALD_X_V: value });
const wrong = (schema: z.ZodType, value: string) => problemsOf(z.object({ HERALD_X_V: schema }), { HERALD_X_V: value });

test.each<[string, string, z.ZodType, unknown]>([
  ["port", "8080", variables.port(), 8080],
  ["port", "0", variables.port(), 0],
  ["integer", "9", variables.integer({ min: 1, max: 9 }), 9],
  ["url", "https://a.example/x", variables.url("https"), "https://a.example/x"],
  ["urls", "nats://a:1, tls://b", variables.urls("nats", "tls"), ["nats://a:1", "tls://b"]],
  ["mongoUrl", "mongodb://u:p@a,b/?replicaSet=r", variables.mongoUrl(), "mongodb://u:p@a,b/?replicaSet=r"],
  ["secret", "abcd", variables.secret({ min: 4 }), "abcd"],
  ["durationMs", "1.5h", variables.durationMs(), 5_400_000],
  ["durationMs", "250", variables.durationMs(), 250],
  ["durationMs", "30 s", variables.durationMs(), 30_000],
  ["bytes", "64KiB", variables.byteSize(), 65_536],
  ["bytes", "2MB", variables.byteSize(), 2_000_000],
  ["flag", "true", variables.flag(), true],
  ["flag", "OFF", variables.flag(), false],
  ["choice", "b", variables.choice("a", "b"), "b"],
  ["host", "0.0.0.0", variables.host(), "0.0.0.0"],
  ["host", "::1", variables.host(), "::1"],
  ["proxyUrl", "http://proxy.example:3128", variables.proxyUrl(), "http://proxy.example:3128/"],
  ["proxyUrl", "proxy.example:3128", variables.proxyUrl(), "http://proxy.example:3128/"],
  ["proxyUrl", "https://u:p%40@[fd00::1]:3128/", variables.proxyUrl(), "https://u:p%40@[fd00::1]:3128/"],
])("%s reads %j", (_name, text, schema, value) => {
  expect(read(schema, text)).toEqual({ HERALD_X_V: value });
});

test.each<[string, string, z.ZodType]>([
  ["port", "65536", variables.port()],
  ["port", "-1", variables.port()],
  ["port", "80a", variables.port()],
  ["port", "1e3", variables.port()],
  ["integer", "10", variables.integer({ min: 1, max: 9 })],
  ["url", "http://a", variables.url("https")],
  ["url", "a", variables.url("https")],
  ["urls", "nats://a,b", variables.urls("nats")],
  ["mongoUrl", "http://a", variables.mongoUrl()],
  ["secret", "abc", variables.secret({ min: 4 })],
  ["durationMs", "5 fortnights", variables.durationMs()],
  ["durationMs", "10ms", variables.durationMs({ min: 1000 })],
  ["durationMs", "1h", variables.durationMs({ max: 1000 })],
  ["bytes", "-1", variables.byteSize()],
  ["bytes", "1KiB", variables.byteSize({ max: 10 })],
  ["flag", "maybe", variables.flag()],
  ["choice", "c", variables.choice("a", "b")],
  ["host", "a b", variables.host()],
  ["proxyUrl", "socks5://proxy.example:1080", variables.proxyUrl()],
  ["proxyUrl", "http://", variables.proxyUrl()],
  ["proxyUrl", "http://u:%zz@proxy.example", variables.proxyUrl()],
])("%s refuses %j, and says what would be accepted", (_name, text, schema) => {
  const [problem, ...rest] = wrong(schema, text);
  expect(rest).toEqual([]);
  expect(problem).toMatch(/^HERALD_X_V: is .+; accepted: .+; for example .+$/);
});

const gateway = z.object({
  ...natsConfig,
  ...logConfig,
  ...telemetryConfig,
  ...httpConfig({ port: 8080, metricsPort: 9464 }),
  HERALD_GATEWAY_CONSOLE: variables.flag().default(true),
  HERALD_ADMIN_TOKEN: variables.secret(),
});

const complete = { HERALD_NATS_URL: "nats://127.0.0.1:4222", HERALD_ADMIN_TOKEN: "0123456789abcdef" };

test("uses defaults for variables that are unset or empty", () => {
  expect(readConfig(gateway, { ...complete, HERALD_PORT: "", OTEL_EXPORTER_OTLP_ENDPOINT: "" })).toEqual({
    HERALD_NATS_URL: ["nats://127.0.0.1:4222"],
    HERALD_ADMIN_TOKEN: "0123456789abcdef",
    HERALD_LOG_LEVEL: "info",
    HERALD_GATEWAY_CONSOLE: true,
    HERALD_HOST: "127.0.0.1",
    HERALD_PORT: 8080,
    HERALD_METRICS_PORT: 9464,
  });
});

test("every problem is reported at once, by name, with what would help", () => {
  expect(
    problemsOf(gateway, {
      HERALD_NATS_URL: "http://user:hunter2@nats",
      HERALD_LOG_LEVEL: "loud",
      HERALD_PORT: "eighty",
      HERALD_HOTS: "0.0.0.0",
      HERALD_GATEWAY_FEATURES: "x",
    }),
  ).toEqual([
    "HERALD_NATS_URL: is not a list of URLs that begin with nats:// or tls:// or ws:// or wss://; accepted: one URL, or several with commas between them; for example nats://127.0.0.1:4222",
    'HERALD_LOG_LEVEL: is not one of trace, debug, info, warn, error, fatal, silent (it is "loud"); accepted: one of trace, debug, info, warn, error, fatal, silent; for example trace',
    'HERALD_PORT: is not a port (it is "eighty"); accepted: a whole number from 0 to 65535, 0 for any free port; for example 8080',
    "HERALD_ADMIN_TOKEN: is not set; accepted: at least 16 random characters; for example the output of `openssl rand -base64 32`",
    "HERALD_GATEWAY_FEATURES: is not a variable of this service; take it away",
    "HERALD_HOTS: is not a variable of this service; probably HERALD_HOST is meant",
  ]);
});

test("a secret is never repeated, however it is wrong", () => {
  const schema = z.object({
    ...mongoConfig,
    HERALD_X_SECRET: variables.secret({ min: 40 }),
    HERALD_X_KEYS: variables.keyRing(parseMasterKeys, "current"),
  });
  const problems = problemsOf(schema, {
    HERALD_MONGO_URL: "postgres://u:hunter2@a",
    HERALD_X_SECRET: "hunter2hunter2",
    HERALD_X_KEYS: "hunter2hunter2",
  });
  expect(problems).toHaveLength(3);
  expect(problems.join()).not.toContain("hunter2");
});

describe("a secret from a file", () => {
  let folder: string;
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), "herald-secret-"));
  });
  afterEach(() => rm(folder, { recursive: true, force: true }));
  const { HERALD_ADMIN_TOKEN, ...others } = complete;
  const file = () => join(folder, "token");

  test("is the content of the file without its last line break", async () => {
    await writeFile(file(), `${HERALD_ADMIN_TOKEN}\n`);
    expect(readConfig(gateway, { ...others, HERALD_ADMIN_TOKEN_FILE: file() })).toMatchObject({ HERALD_ADMIN_TOKEN });
  });

  test("that is missing, empty, too short or given twice is a problem that names it", async () => {
    const problems = (env: Record<string, string>) => problemsOf(gateway, { ...others, ...env });
    const named = { HERALD_ADMIN_TOKEN_FILE: file() };
    expect(problems(named)).toEqual([expect.stringMatching(/^HERALD_ADMIN_TOKEN_FILE: cannot be read: ENOENT/)]);
    await writeFile(file(), "\n");
    expect(problems(named)).toEqual([expect.stringMatching(/^HERALD_ADMIN_TOKEN: is not set; accepted: /)]);
    await writeFile(file(), "hunter2");
    expect(problems(named)).toEqual([expect.stringMatching(/^HERALD_ADMIN_TOKEN: is shorter than 16 characters; /)]);
    expect(problems({ ...named, HERALD_ADMIN_TOKEN })).toEqual([
      "HERALD_ADMIN_TOKEN_FILE: is set beside HERALD_ADMIN_TOKEN; set one of the two",
    ]);
  });

  test("is for secrets alone, and a slip in its name is noticed", () => {
    expect(problemsOf(gateway, { ...complete, HERALD_GATEWAY_CONSOLE_FILE: "/x" })).toEqual([
      expect.stringMatching(/^HERALD_GATEWAY_CONSOLE_FILE: is not a variable of this service/),
    ]);
    expect(problemsOf(gateway, { ...complete, HERALD_ADMIN_TOKEN_FIEL: "/x" })).toEqual([
      "HERALD_ADMIN_TOKEN_FIEL: is not a variable of this service; probably HERALD_ADMIN_TOKEN_FILE is meant",
    ]);
  });
});

test("a secret that is easy to guess is refused, and not repeated", () => {
  for (const easy of ["a".repeat(40), "changeme".repeat(4).slice(0, 7).repeat(5), "123123123123123123"])
    expect(problemsOf(gateway, { ...complete, HERALD_ADMIN_TOKEN: easy })).toEqual([
      expect.stringMatching(/^HERALD_ADMIN_TOKEN: is easy to guess; accepted: at least 16 random characters/),
    ]);
});

test("ignores variables of other services and programs", () => {
  const others = {
    HERALD_REGISTRY_QUOTA_DEVICES: "1",
    HERALD_DISPATCH_MASTER_KEY: "x",
    HERALD_MONGO_URL: "mongodb://a",
    HERALD_NATS_ADMIN_USER: "a",
    PATH: "/",
  };
  expect(readConfig(gateway, { ...complete, ...others })).toMatchObject({ HERALD_PORT: 8080 });
});

test("the proxy's variables are read in lower case, too, as other programs do", () => {
  const schema = z.object(proxyConfig);
  const lower = { https_proxy: "http://lower.example:3128", no_proxy: "a.example" };
  expect(readConfig(schema, { ...lower, HTTPS_PROXY: "" })).toEqual({
    HTTPS_PROXY: "http://lower.example:3128/",
    NO_PROXY: "a.example",
  });
  const upper = { HTTPS_PROXY: "http://upper.example:3128", NO_PROXY: "b.example" };
  expect(readConfig(schema, { ...lower, ...upper })).toEqual({
    HTTPS_PROXY: "http://upper.example:3128/",
    NO_PROXY: "b.example",
  });
  expect(problemsOf(schema, { https_proxy: "socks5://user:hunter2@a" }).join()).not.toContain("hunter2");
  expect(readConfig(schema, {})).toEqual({});
});

test("a slip in a shared variable is noticed", () => {
  expect(problemsOf(gateway, { ...complete, HERALD_LOG_LEVLE: "debug" })).toEqual([
    "HERALD_LOG_LEVLE: is not a variable of this service; probably HERALD_LOG_LEVEL is meant",
  ]);
});

test("a schema may check across variables and turn them into something else", () => {
  const schema = z
    .object({
      HERALD_X_LEAST: variables.integer({ min: 0, max: 9 }),
      HERALD_X_MOST: variables.integer({ min: 0, max: 9 }).default(5),
    })
    .superRefine((config, context) => {
      if (config.HERALD_X_LEAST > config.HERALD_X_MOST)
        context.addIssue({ code: "custom", path: ["HERALD_X_LEAST"], message: "is larger than HERALD_X_MOST" });
    })
    .transform((config) => ({ min: config.HERALD_X_LEAST, max: config.HERALD_X_MOST }));
  expect(readConfig(schema, { HERALD_X_LEAST: "3" })).toEqual({ min: 3, max: 5 });
  expect(problemsOf(schema, { HERALD_X_LEAST: "7" })).toEqual([
    'HERALD_X_LEAST: is larger than HERALD_X_MOST (it is "7"); accepted: a whole number from 0 to 9; for example 0',
  ]);
});

test("the message is a list for a terminal", () => {
  const error = new ConfigError(["A: is wrong", "B: is wrong"]);
  expect(error.message).toBe("The configuration has 2 problems:\n  A: is wrong\n  B: is wrong");
});
