import {
  type Device,
  type Notification,
  type Scope,
  tokenProblems,
  type Webhook,
  type WebhookMessageDetail,
} from "@herald/contracts";
import { describe, expect, test } from "vitest";
import type { CallerOf } from "./caller.ts";
import { deviceFor, messageFor, notificationFor, targetFor, webhookFor } from "./shown-to.ts";

const by = (...scopes: Scope[]) => ({ kind: "project", scopes }) as unknown as CallerOf<"project">;
const device = { token: "740f4707bebcf74f9b7c25d48e3358945f6aa01d" } as Device;

describe("a push token", () => {
  test.each([[["read"]], [["send"]], [["read", "send"]]] as Scope[][][])("is shown to %j by its end", (scopes) => {
    expect(deviceFor(by(...scopes))(device).token).toBe("…5f6aa01d");
  });

  test.each([[["devices"]], [["read", "export"]]] as Scope[][][])("is shown to %j whole", (scopes) => {
    expect(deviceFor(by(...scopes))(device)).toBe(device);
  });

  test("is shown to its device whole", () => {
    expect(deviceFor({ kind: "device" } as CallerOf<"device">)(device)).toBe(device);
  });

  test("that is short is never shown by more than its half", () => {
    expect(deviceFor(by("read"))({ ...device, token: "0123456789" }).token).toBe("…56789");
    expect(deviceFor(by("read"))({ ...device, token: "x" }).token).toBe("…");
  });

  test("is hidden where targets quote it, and only there", () => {
    const quoting = {
      targets: [`token:${device.token}`, "topic:token:x", "all"],
      unmatched: [`token:${device.token}`],
    };
    expect(notificationFor(by("read"))(quoting as unknown as Notification)).toEqual({
      targets: ["token:…5f6aa01d", "topic:token:x", "all"],
      unmatched: ["token:…5f6aa01d"],
    });
    expect(targetFor(by("read"), `token:${device.token}`)).toBe("token:…5f6aa01d");
    expect(targetFor(by("read", "devices"), `token:${device.token}`)).toBe(`token:${device.token}`);
  });

  test.each(["ios", "android", "web"] as const)("whose beginning is hidden cannot be registered for %s", (platform) => {
    const { token } = deviceFor(by("read"))(device);
    const problems = tokenProblems({ platform, token, ...(platform === "web" && { keys: {} }) }, "token");
    expect(problems.map(({ path }) => path)).toEqual([["token"]]);
  });
});

test("a webhook's path, query and responses are for callers who may change it", () => {
  const webhook = { url: "https://hooks.example:8443/services/T0/secret?key=1" } as Webhook;
  expect(webhookFor(by("read"))(webhook).url).toBe("https://hooks.example:8443/…");
  expect(webhookFor(by("read", "send"))(webhook)).toBe(webhook);
  const message = { attempts: [{ at: "now", status: 404, response: "Cannot POST /services" }] } as unknown;
  expect(messageFor(by("read"), message as WebhookMessageDetail)).toEqual({ attempts: [{ at: "now", status: 404 }] });
  expect(messageFor(by("read", "send"), message as WebhookMessageDetail)).toBe(message);
});
