import { describe, expect, it } from "vitest";
import { checkMessage } from "./check-message.ts";

const check = (document: unknown) => checkMessage(JSON.stringify(document));

describe("a message is accepted", () => {
  it("with its target separate from the payload", () => {
    expect(check({ message: { token: "a:b", data: { k: "v" } }, validate_only: true })).toEqual({
      target: "a:b",
      payload: { data: { k: "v" } },
      validateOnly: true,
    });
  });

  const right: [string, object][] = [
    ["an installation id", { fid: "cHkUvHDRT0mVg6gvEbWFaR" }],
    ["a topic", { topic: "news" }],
    ["a condition", { condition: "'a' in topics" }],
    ["the camel-case spelling", { token: "a", android: { collapseKey: "x", restrictedPackageName: "org.example" } }],
    ["a ttl of four weeks", { token: "a", android: { ttl: "2419200s" } }],
    ["a ttl in fractions", { token: "a", android: { ttl: "3.5s" } }],
    ["4,096 bytes", { token: "a", data: { k: "x".repeat(4095) } }],
    [
      "every platform's part",
      {
        token: "a",
        android: { notification: { title: "x" } },
        apns: { payload: { aps: {} } },
        webpush: { notification: { any: 1 } },
      },
    ],
  ];
  it.each(right)("with %s", (_name, message) => expect(check({ message })).not.toHaveProperty("violations"));
});

describe("a message is refused", () => {
  const wrong: [string, unknown, string][] = [
    ["that is missing", {}, "message"],
    ["without a target", { message: { data: {} } }, "message"],
    ["with two targets", { message: { token: "a", topic: "b" } }, "message"],
    ["with a token with blanks", { message: { token: "a b" } }, "message.token"],
    ["with an installation id that is none", { message: { fid: "short" } }, "message.fid"],
    ["with an unknown field", { message: { token: "a", badge: 1 } }, "message"],
    ["beside an unknown field", { message: { token: "a" }, dry_run: true }, ""],
    ["with data that is no string", { message: { token: "a", data: { n: 1 } } }, "message.data.n"],
    [
      "with a key that Google reserves",
      { message: { token: "a", data: { "google.x": "1" } } },
      "message.data.google.x",
    ],
    ["with a key of GCM", { message: { token: "a", data: { "gcm.x": "1" } } }, "message.data.gcm.x"],
    ["with the key from", { message: { token: "a", data: { from: "1" } } }, "message.data.from"],
    [
      "with an unknown priority",
      { message: { token: "a", android: { priority: "urgent" } } },
      "message.android.priority",
    ],
    [
      "with an unknown priority of its notification",
      { message: { token: "a", android: { notification: { notification_priority: "HIGH" } } } },
      "message.android.notification.notification_priority",
    ],
    [
      "with a label with a blank",
      { message: { token: "a", fcm_options: { analytics_label: "spring 2030" } } },
      "message.fcm_options.analytics_label",
    ],
    [
      "with an unknown visibility",
      { message: { token: "a", android: { notification: { visibility: "public" } } } },
      "message.android.notification.visibility",
    ],
    ["with a ttl in numbers", { message: { token: "a", android: { ttl: 3600 } } }, "message.android.ttl"],
    ["with a ttl past four weeks", { message: { token: "a", android: { ttl: "2419201s" } } }, "message.android.ttl"],
    ["of 4,097 bytes", { message: { token: "a", data: { k: "x".repeat(4096) } } }, "message"],
    [
      "of 4,097 bytes, the title included",
      { message: { token: "a", notification: { title: "x".repeat(92) }, data: { k: "x".repeat(3999) } } },
      "message",
    ],
  ];
  it.each(wrong)("%s", (_name, document, field) => {
    expect(check(document)).toMatchObject({ violations: [{ field, description: expect.stringMatching(/./) }] });
  });

  it("with a repeated name", () => {
    expect(checkMessage('{"message":{"token":"a","data":{"token":"b","token":"c"}}}')).toMatchObject({
      violations: [{ description: expect.stringContaining("`token`") }],
    });
  });
  it("that is not JSON", () => expect(checkMessage("{")).toMatchObject({ violations: [{ field: "" }] }));
});
