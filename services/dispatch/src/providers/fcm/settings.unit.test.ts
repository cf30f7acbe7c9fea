import { generateKeyPairSync } from "node:crypto";
import { expect, it, test } from "vitest";
import { problemsOf } from "../../../test/settings-fixture.ts";
import { checkFcmSettings, fcmPublicView } from "./settings.ts";

const rules = { customEndpoints: false, now: new Date("2026-03-01T12:00:00Z") };
const rsa = generateKeyPairSync("rsa", { modulusLength: 2048 }).privateKey.export({ type: "pkcs8", format: "pem" });
const ec = generateKeyPairSync("ec", { namedCurve: "P-256" }).privateKey.export({ type: "pkcs8", format: "pem" });
const account = {
  type: "service_account",
  project_id: "demo-1234",
  private_key_id: "0123456789abcdef",
  private_key: rsa,
  client_email: "firebase-adminsdk@demo-1234.iam.gserviceaccount.com",
  client_id: "1",
  token_uri: "https://evil.example/token",
};
const problems = (serviceAccount: unknown, over: object = {}) =>
  problemsOf(() => checkFcmSettings({ service_account: serviceAccount, ...over }, rules));

test("accepts Firebase's JSON unchanged", () => {
  expect(checkFcmSettings({ service_account: account }, rules)).toEqual({ service_account: account });
});

it.each([
  [
    "another kind of credential",
    { ...account, type: "authorized_user" },
    [/^service_account\.type: must be "service_account"/],
  ],
  [
    "a key that does not parse",
    { ...account, private_key: "-----BEGIN" },
    [/^service_account\.private_key: is not an RSA/],
  ],
  ["a key of another kind", { ...account, private_key: ec }, [/^service_account\.private_key: is not an RSA/]],
  ["a project that is none", { ...account, project_id: "../x" }, [/^service_account\.project_id: must be/]],
  [
    "a key with the line breaks of an environment variable",
    { ...account, private_key: String(rsa).replaceAll("\n", "\\n") },
    [/^service_account\.private_key: has `\\n` where its lines end/],
  ],
  [
    "the address of a person",
    { ...account, client_email: "maria@example.com" },
    [/^service_account\.client_email: must be a service account's, which ends with \.gserviceaccount\.com/],
  ],
  ["an address that is none", { ...account, client_email: "x" }, [/^service_account\.client_email: must be/]],
  [
    "nothing",
    {},
    [
      /^service_account\.type/,
      /^service_account\.project_id/,
      /^service_account\.client_email/,
      /^service_account\.private_key/,
    ],
  ],
  ["the file as text", JSON.stringify(account), [/^service_account: /]],
])("says what is wrong with %s", (_, serviceAccount, messages) => {
  expect(problems(serviceAccount)).toEqual(messages.map((message) => expect.stringMatching(message)));
});

test("refuses an endpoint unless the operator allows it, and fields that it does not know", () => {
  expect(problems(account, { endpoint: "https://localhost:1", extra: 1 })).toEqual(["extra: is not known"]);
  expect(problems(account, { endpoint: "https://localhost:1" })).toEqual([
    expect.stringMatching(/^endpoint: is not allowed here/),
  ]);
});

test("shows no key", () => {
  const view = fcmPublicView({ service_account: account });
  expect(view).toEqual({
    project_id: "demo-1234",
    client_email: "firebase-adminsdk@demo-1234.iam.gserviceaccount.com",
    private_key_id: "0123456789abcdef",
  });
  const elsewhere = { endpoint: "https://push.example.com", ca: "-----BEGIN CERTIFICATE-----" };
  expect(fcmPublicView({ service_account: account, ...elsewhere })).toEqual({ ...view, ...elsewhere });
});
