import { ConfigError, readConfig } from "@herald/kit";
import { expect, test } from "vitest";
import { GatewayConfig } from "./config.ts";

const key = Buffer.alloc(32, 1).toString("base64");
const min = {
  HERALD_NATS_URL: "nats://127.0.0.1:4222",
  HERALD_ADMIN_TOKEN: "0123456789abcdef01234567",
  HERALD_OPEN_KEYS: `k2:${key},k1:${key}`,
};

test("few variables are required, and the others have safe defaults", () => {
  const config = readConfig(GatewayConfig, min);
  expect(config.HERALD_OPEN_KEYS.map(({ id }) => id)).toEqual(["k2", "k1"]);
  expect(config).toMatchObject({
    HERALD_HOST: "127.0.0.1",
    HERALD_PORT: 8080,
    HERALD_GATEWAY_TRUST_PROXY: 0,
    HERALD_GATEWAY_ADMIN_TRUST_PROXY: 0,
    HERALD_GATEWAY_LIMIT_FAILURES: 100,
    HERALD_GATEWAY_LIMIT_CLIENTS: 600,
    HERALD_GATEWAY_LIMIT_STREAMS: 200,
    HERALD_GATEWAY_LIMIT_PROJECT: 10_000,
    HERALD_GATEWAY_QUOTA_SENDS: 1_000_000,
    HERALD_GATEWAY_QUOTA_QUEUED: 50_000,
  });
});

test("all problems are reported at once, without secrets", () => {
  const wrong = {
    HERALD_ADMIN_TOKEN: "too-short",
    HERALD_OPEN_KEYS: `k1:${Buffer.alloc(8, 1).toString("base64")}`,
    HERALD_GATEWAY_LIMIT_CLIENTS: "0",
    HERALD_GATEWAY_TRUST_PROXIES: "1",
  };
  try {
    readConfig(GatewayConfig, wrong);
    expect.unreachable();
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    for (const name of ["HERALD_NATS_URL", ...Object.keys(wrong)]) expect(error.message).toContain(name);
    expect(error.message).not.toContain("too-short");
    expect(error.message).not.toContain(wrong.HERALD_OPEN_KEYS);
  }
});
