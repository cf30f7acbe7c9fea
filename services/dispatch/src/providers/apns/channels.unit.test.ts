import type { Transport, TransportAnswer, TransportRequest } from "@herald/http2-client";
import { describe, expect, test } from "vitest";
import { createApnsChannels } from "./channels.ts";

const id = "dHN0LXNyY2gtY2hubA==";
const settings = { bundle_id: "com.example.app", environment: "production" as const };

const channels = (answer: TransportAnswer, more: object = {}) => {
  const sent: (TransportRequest & { readonly origin: string })[] = [];
  const { channels: client } = createApnsChannels({
    settings: { ...settings, key_id: "K", team_id: "T", private_key: "", ...more },
    apps: new Set(["com.example.app", "com.example.other"]),
    authorization: () => "bearer token",
    connect: (origin): Transport => ({
      send: async (request) => {
        sent.push({ ...request, origin });
        return answer;
      },
      close: async () => {},
    }),
  });
  return { ...client, sent };
};
const answered = (status: number, body: unknown = "", headers: Record<string, string> = {}): TransportAnswer => ({
  ...{ kind: "answered", status, headers, body: typeof body === "string" ? body : JSON.stringify(body) },
});

describe("a request about channels", () => {
  test("goes to Apple's host of the environment, with Apple's method, path and headers", async () => {
    const { ask, sent } = channels(answered(204));
    await ask("make", "com.example.app/production");
    await ask("list", "com.example.app/sandbox");
    await ask("delete", "com.example.other/sandbox", id);
    expect(sent).toMatchObject([
      {
        origin: "https://api-manage-broadcast.push.apple.com:2196",
        path: "/1/apps/com.example.app/channels",
        headers: { authorization: "bearer token", "apns-request-id": expect.stringMatching(/^[0-9a-f-]{36}$/) },
        body: '{"message-storage-policy":1,"push-type":"LiveActivity"}',
      },
      {
        origin: "https://api-manage-broadcast.sandbox.push.apple.com:2195",
        ...{ method: "GET", path: "/1/apps/com.example.app/all-channels", body: "" },
      },
      { method: "DELETE", path: "/1/apps/com.example.other/channels", headers: { "apns-channel-id": id } },
    ]);
    expect(sent[0]).not.toHaveProperty("method");
    const own = channels(answered(204), { endpoint: "https://127.0.0.1:1" });
    await own.ask("list", "com.example.app/sandbox");
    expect(own.sent).toMatchObject([{ origin: "https://127.0.0.1:1" }]);
  });

  test("about an app that the settings do not name is not sent", async () => {
    const { ask, nameOf, sent } = channels(answered(201));
    expect(await ask("make", "com.example.foreign/sandbox")).toEqual({ kind: "refused", reason: "app-not-configured" });
    expect(sent).toEqual([]);
    expect([{}, { app: "com.example.other", environment: "sandbox" as const }, { app: "foreign" }].map(nameOf)).toEqual(
      ["com.example.app/production", "com.example.other/sandbox", undefined],
    );
  });

  const made = { "apns-channel-id": id };
  test.each<[string, "make" | "list" | "delete", TransportAnswer, object]>([
    ["made", "make", answered(201, "", made), { kind: "done", ids: [id] }],
    ["made without an id", "make", answered(201), { kind: "unknown" }],
    ["made with an id that is no header", "make", answered(201, "", { "apns-channel-id": "x y" }), { kind: "unknown" }],
    ["listed", "list", answered(200, { channels: [id, id] }), { kind: "done", ids: [id, id] }],
    ["listed, cut in the middle", "list", answered(200, `{"channels":["${id}","a`), { kind: "unknown" }],
    ["listed with something else", "list", answered(200, { channels: [id, 1] }), { kind: "unknown" }],
    ["deleted", "delete", answered(204), { kind: "done", ids: [] }],
    ["over quota", "make", answered(400, { reason: "CannotCreateChannelConfig" }), { kind: "refused" }],
    ["refused", "make", answered(403, { reason: "InvalidProviderToken" }), { kind: "refused" }],
    ["limited", "make", answered(429, { reason: "TooManyRequests" }), { kind: "refused" }],
    ["failing", "make", answered(503, { reason: "ServiceUnavailable" }), { kind: "unknown" }],
    ["from a web page", "make", answered(403, "<html>login</html>"), { kind: "unknown" }],
    ["not reached", "make", { kind: "unprocessed", reason: "ECONNREFUSED" }, { kind: "not-done" }],
    ["lost", "make", { kind: "unknown", reason: "no answer within 20000 ms" }, { kind: "unknown" }],
  ])("%s", async (_, what, answer, expected) => {
    expect(await channels(answer).ask(what, "com.example.app/production", id)).toMatchObject(expected);
  });
});
