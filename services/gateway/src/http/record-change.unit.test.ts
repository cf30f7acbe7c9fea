import { describe, expect, test } from "vitest";
import { auditedFields, auditedSend, auditedState } from "./record-change.ts";

describe("an audited state", () => {
  test("shows what is known to be no secret, numbers and flags, and masks every other text", () => {
    const body = {
      key_id: "ABC123DEFG",
      private_key: "-----BEGIN PRIVATE KEY-----",
      environment: "production",
      service_account: { client_email: "a@b", private_key: "x" },
      invented_later: "secret",
      open_registration: false,
      scopes: ["send", "read"],
      keys: { auth: "abc" },
      expires: 7,
      nothing: null,
    };
    expect(auditedState(body)).toEqual({
      key_id: "ABC123DEFG",
      private_key: "[masked]",
      environment: "production",
      service_account: { client_email: "[masked]", private_key: "[masked]" },
      invented_later: "[masked]",
      open_registration: false,
      scopes: ["send", "read"],
      keys: { auth: "[masked]" },
      expires: 7,
      nothing: null,
    });
  });

  test("is bounded", () => {
    const deep = { a: { a: { a: { a: { a: { a: 1 } } } } } };
    expect(JSON.stringify(auditedState(deep))).toContain("[masked]");
    const large = { name: "n".repeat(1_000), dead_letters: Array.from({ length: 1_000 }, () => "1") };
    const { name, dead_letters: letters } = auditedState(large) as { name: string; dead_letters: string[] };
    expect([name.length, letters.length]).toEqual([200, 100]);
    expect(auditedState({ name: `n${"😀".repeat(200)}` })).toEqual({ name: `n${"😀".repeat(99)}` });
  });

  test("is absent for anything but an object", () => {
    expect([auditedState(undefined), auditedState("x"), auditedState([1]), auditedState(null)]).toEqual(
      Array.from({ length: 4 }, () => undefined),
    );
  });
});

test.each([
  [
    { device: { platform: "ios", metadata: { ann: 1 }, user_id: "ann" } },
    ["device.platform", "device.metadata", "device.user_id"],
  ],
  [{ metadata: { ann: 1 }, identifiers: { ann: "ann" } }, ["metadata", "identifiers"]],
  [{ devices: [{ token: "ann" }] }, ["devices"]],
  [{}, []],
])("of a change in a project only the names of fields are shown: %j", (body, fields) => {
  expect(auditedFields(body)).toEqual({ fields });
});

test("of a send only its size is shown", () => {
  const notification = { title: "Hi Ann", targets: ["user:ann", "topic:news"] };
  expect(auditedSend({ notification })).toEqual({ targets: 2 });
  expect(auditedSend({ notifications: [notification, notification] })).toEqual({ notifications: 2 });
});
