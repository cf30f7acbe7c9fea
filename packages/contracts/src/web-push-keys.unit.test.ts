import { expect, test } from "vitest";
import { WebPushKeys } from "./platforms.ts";

const point = Buffer.alloc(65, 0xfb).fill(4, 0, 1);
const secret = Buffer.alloc(16, 0xff);

test.each(["base64", "base64url"] as const)("the keys of a subscription may come in %s", (encoding) => {
  const keys = { p256dh: point.toString(encoding), auth: secret.toString(encoding) };
  const read = WebPushKeys.parse(keys);
  expect(read.p256dh.replace("=", "")).toBe(point.toString("base64url"));
  expect(read.auth.replace("==", "")).toBe(secret.toString("base64url"));
});

test("other texts are no keys", () => {
  const auth = secret.toString("base64url");
  for (const p256dh of [`${"B".repeat(86)}*`, `${"B".repeat(86)}.`, ` ${"B".repeat(86)}`, "B".repeat(86)])
    expect(WebPushKeys.safeParse({ p256dh, auth }).success).toBe(false);
});
