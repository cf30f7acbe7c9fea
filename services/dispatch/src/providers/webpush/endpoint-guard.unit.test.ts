import { describe, expect, it } from "vitest";
import { checkEndpoint } from "./client.ts";

const anyHost = { anyHost: true };
const known = { anyHost: false };

describe("an endpoint", () => {
  it.each([
    "https://fcm.googleapis.com/fcm/send/abc:APA91b",
    "https://updates.push.services.mozilla.com/wpush/v2/gAAA",
    "https://wns2-par02p.notify.windows.com/w/?token=BQ%3d",
    "https://web.push.apple.com/QGuQ",
  ])("of a browser's push service is taken: %s", (endpoint) => {
    const url = new URL(endpoint);
    expect(checkEndpoint(endpoint, known)).toEqual({
      ok: true,
      origin: url.origin,
      hostname: url.hostname,
      path: url.pathname + url.search,
    });
  });

  it.each([
    "https://example.com/push",
    "https://fcm.googleapis.com.example.com/",
    "https://evilfcm.googleapis.com/",
    "https://googleapis.com/",
    "https://push.apple.com.evil.example/",
  ])("of any other host is taken only where the operator lets it: %s", (endpoint) => {
    expect(checkEndpoint(endpoint, known)).toMatchObject({
      ok: false,
      problem: expect.stringMatching(/known push service/),
    });
    expect(checkEndpoint(endpoint, anyHost)).toMatchObject({ ok: true });
  });

  it("of the project's own endpoint is exempt, and only of that origin", () => {
    const rules = { ...known, exemptOrigin: "https://127.0.0.1:9443" };
    expect(checkEndpoint("https://127.0.0.1:9443/push/x?y", rules)).toEqual({
      ok: true,
      origin: "https://127.0.0.1:9443",
      hostname: "127.0.0.1",
      path: "/push/x?y",
    });
    for (const other of [
      "https://127.0.0.1:9444/",
      "https://127.0.0.1/",
      "http://127.0.0.1:9443/",
      "https://u@127.0.0.1:9443/",
    ])
      expect(checkEndpoint(other, rules)).toMatchObject({ ok: false });
  });

  it.each([
    "https://127.0.0.1/",
    "https://localhost/",
    "http://fcm.googleapis.com/",
    "https://fcm.googleapis.com:8443/",
    "x",
  ])("that could lead inside is refused, whatever hosts are allowed: %s", (endpoint) => {
    expect(checkEndpoint(endpoint, anyHost)).toEqual({ ok: false, problem: expect.stringMatching(/^the endpoint/) });
  });
});
