import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { UsageError } from "../failures.ts";
import { toProjectFile } from "./from-state.ts";
import { parseProjectFile } from "./project-file.ts";

const base = "herald: 1\nproject: { key: shop }\n";
const problems = (text: string): readonly string[] => {
  try {
    parseProjectFile(text, "shop.yaml");
    return [];
  } catch (error) {
    if (error instanceof UsageError) return error.errors;
    throw error;
  }
};

test.each([
  ["nothing", "", "1:1: must be names with values"],
  ["a list", "- a", "1:1: must be names with values"],
  ["no key", "herald: 1\nproject: { name: Shop }", "2:10: project: key is missing"],
  ["another version", "herald: 2\nproject: { key: shop }", "1:9: herald: must be 1"],
  ["broken YAML", `${base}limits: { sends: [1 }`, "3:21: "],
  ["an unknown section", `${base}limit: {}`, '3:1: "limit" is not known; did you mean limits?'],
  [
    "an unknown field",
    `${base}tokens: [{ name: a, scope: [send] }]`,
    '3:21: tokens[0]: "scope" is not known; did you mean scopes?',
  ],
  [
    "a field that is like none",
    `${base}limits: { requests-per-second: 1 }`,
    '3:11: limits: "requests-per-second" is not known; known are token, project',
  ],
  ["the same key twice", `${base}limits: { sends: 1 }\nlimits: { sends: 2 }`, "4:1: Map keys must be unique"],
  ["a key that an object inherits", `${base}constructor: 1`, '3:1: "constructor" is not known'],
  ["a text for a number", `${base}limits: { sends: many }`, "3:18: limits.sends: must be a whole number, or null"],
  ["a number out of range", `${base}limits: { sends: 0 }`, "3:18: limits.sends: must be 1 to 1000000000, or null"],
  [
    "a value of no enum",
    `${base}tokens: [{ name: a, scopes: [write] }]`,
    "3:30: tokens[0].scopes[0]: must be one of send, read",
  ],
  [
    "a key in capitals",
    "herald: 1\nproject: { key: Shop }",
    "2:17: project.key: must match ^[a-z][a-z0-9-]{0,62}$, such as shop",
  ],
  [
    "a certificate without its key",
    `${base}providers: { apns: { certificate: { file: a }, bundle_id: a.b } }`,
    "3:20: providers.apns: private_key is missing",
  ],
  [
    "two sources",
    `${base}providers: { fcm: { service_account: { file: a, env: B } } }`,
    "3:38: providers.fcm.service_account: must be at most 1 of file, env",
  ],
  [
    "one name for two tokens",
    `${base}tokens: [{ name: a }, { name: a }]`,
    "3:31: tokens[1].name: another entry has the name a",
  ],
  [
    "one file for two secrets",
    `${base}tokens: [{ name: a, secret: { write: x } }, { name: b, secret: { write: x } }]`,
    "another entry has the file x",
  ],
  ["an alias", `${base}limits: &a { sends: 1 }\ntokens: *a`, "4:9: aliases are not accepted"],
  ["a binary value", `${base}tokens: !!binary aGk=`, "tokens: must be a list"],
  ["two documents", `${base}---\n${base}`, "Source contains multiple documents"],
])("%s is refused with its line and column", (_, text, message) => {
  expect(problems(text)[0]).toContain(message);
  expect(problems(text)[0]).toMatch(/^shop\.yaml:\d+:\d+: /);
});

test("a secret in the file is refused, and not repeated", () => {
  const [problem] = problems(`${base}tokens: [{ name: a, secret: hpt_secret }]`);
  expect(problem).toBe("shop.yaml:3:29: tokens[0].secret: must be { write: … }, not a text");
});

test("all problems are named at once", () => {
  expect(problems("herald: 1\nproject: { key: 1, nam: Shop }\nlimits: { sends: -1 }")).toHaveLength(3);
});

test("a file that is too large or too deep is refused", () => {
  expect(problems(`${base}# ${"x".repeat(1_048_576)}`)).toEqual(["shop.yaml is larger than 1 MiB."]);
  const deep = "[".repeat(20_000);
  expect(problems(`${base}tokens: ${deep}`).length).toBeLessThanOrEqual(21);
  expect(problems(`${base}tokens: ${deep}${"]".repeat(deep.length)}`)).not.toEqual([]);
});

test("the guide's file is accepted", async () => {
  const page = await readFile(join(import.meta.dirname, "../../../../docs/how-to/keep-a-project-in-a-file.md"), "utf8");
  const [, text = ""] = /```yaml\n(.*?)```/s.exec(page) ?? [];
  expect(parseProjectFile(text, "shop.yaml").file).toMatchObject({ project: { key: "shop" } });
});

test("what a file may contain is accepted", () => {
  const text = `${base}
limits: { sends: 200000, devices: null }
providers:
  apns: { team_id: TEAM123456, key_id: ABC123DEFG, bundle_id: com.example.app, private_key: { file: AuthKey.p8 } }
  fcm: { service_account: { env: ACCOUNT } }
  webpush: { subject: "mailto:push@example.com" }
tokens: [{ name: backend, scopes: [send, read], secret: { write: backend.token } }]
webhooks: [{ url: "https://example.com/", events: null, enabled: false, secret: { write: hook.secret } }]
`;
  expect(parseProjectFile(text, "shop.yaml").file).toMatchObject({ tokens: [{ name: "backend" }] });
});

test("the file of a paused project that asks for approval has the rule, not the pause", () => {
  const at = "2030-01-31T09:00:00.000Z";
  const project = {
    ...{ id: "prj_1", key: "shop", name: "Shop", open_registration: true, protected_metadata: [], receipts: false },
    ...{ default_time_zone: "UTC", approval: { devices: 10_000 }, created_at: at },
    paused: { at, by: { id: "opr_1" }, of: "project" as const },
  };
  const { text } = toProjectFile({ project, limits: [], kinds: [], providers: [], tokens: [], webhooks: [] });
  const { project: settings } = parseProjectFile(text, "shop.yaml").file;
  expect(settings).toMatchObject({ key: "shop", approval: { devices: 10_000 } });
  expect(settings).not.toHaveProperty("paused");
});
