import { mkdtemp, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { request } from "@herald/testing";
import { expect } from "vitest";
import { quickCommandLine } from "../harness/quick-command-line.ts";
import { logOnFailure, type System } from "../harness/system.ts";
import { show } from "./figures.ts";
import { test } from "./shared-system.ts";

let system: System;
test.beforeAll(async ({ system: shared }) => {
  system = shared;
});
logOnFailure(() => system);

const shop = "herald: 1\nproject: { key: shop }\n";
const secret = "hpt_ThisMustNotBeRepeated";
const laughs = Array.from({ length: 9 }, (_, at) => `a${at + 1}: &a${at + 1} [${`*a${at}, `.repeat(9)}]`).join("\n");

/** Each by what is wrong with it. */
const files: Readonly<Record<string, string>> = {
  "nothing at all": "",
  "no YAML": "\u0000\u0001: [",
  "aliases that grow to 10⁹ values": `${shop}a0: &a0 [x]\n${laughs}`,
  "an alias of what contains it": `${shop}tokens: &a [*a]`,
  "1 MiB and a byte": `${shop}#${"x".repeat(1_048_576)}`,
  "100,000 lists in each other": `${shop}tokens: ${"[".repeat(100_000)}${"]".repeat(100_000)}`,
  "100,000 mistakes": `${shop}tokens: [${"{ x: 1 }, ".repeat(100_000)}]`,
  "the same section twice": `${shop}tokens: []\ntokens: []`,
  "the object's prototype": `${shop}__proto__: { tokens: [] }`,
  "a merge key": `${shop}<<: { tokens: [] }`,
  "a type of another language": `${shop}tokens: !!js/function 'function () {}'`,
  "two documents": `${shop}---\n${shop}`,
  "an unknown key": `${shop}toke: []`,
  "a secret in the file": `${shop}tokens: [{ name: a, secret: ${secret} }]`,
  "a secret that is a directory": `${shop}providers: { fcm: { service_account: { file: / } } }`,
  "a service account that is no JSON": `${shop}providers: { fcm: { service_account: { env: NOT_JSON } } }`,
  "a key that is none": "herald: 1\nproject: { key: $ne }",
  "a key that is an operator": "herald: 1\nproject: { key: { $ne: null } }",
  "a number that is none": `${shop}limits: { sends: .nan }`,
  "a file of a later version": "herald: 2\nproject: { key: shop }",
};

test("wrong project files are refused, quote no secret, and send nothing", async ({ task }) => {
  const folder = await mkdtemp(join(system.folder, "files-"));
  // In this process, because starting it costs more than a file. What it does not catch fails the test.
  const { herald } = quickCommandLine({
    HOME: folder,
    // Nothing answers there: a request would end with another exit code.
    HERALD_URL: "http://127.0.0.1:9",
    HERALD_ADMIN_TOKEN: system.adminToken,
    NOT_JSON: secret,
  });
  for (const [what, text] of Object.entries(files)) {
    const file = join(folder, "shop.yaml");
    await writeFile(file, text);
    const { exitCode, stdout, stderr } = await herald("apply", "-f", file);
    expect([exitCode, stdout], what).toEqual([2, ""]);
    expect(stderr, what).toMatch(/^shop\.yaml(:\d+:\d+: | is )/);
    expect(stderr, what).not.toMatch(new RegExp(`${secret}|^ +at `, "m"));
    expect(stderr.length, what).toBeLessThan(8_192);
  }
  show(task, { files: Object.keys(files).length });
});

test("a key is one project's, also when 20 ask at once", async ({ task }) => {
  const key = `race-${Date.now()}`;
  const create = () => system.admin("POST /projects", { body: { project: { name: "Race", key } } });
  // A disk that stalls makes it a 503, whose Retry-After a backend follows; the project may exist all the same.
  const answered = async () => {
    for (;;) {
      const { status, headers } = await create();
      const seconds = Number(headers.get("retry-after"));
      if (status !== 503 || !(seconds > 0)) return status;
      await sleep(seconds * 1_000);
    }
  };
  const statuses = (await Promise.all(Array.from({ length: 20 }, answered))).toSorted();
  expect([
    [201, ...Array(19).fill(409)],
    Array(20).fill(409), // its 201 was lost
  ]).toContainEqual(statuses);
  const named = await system.admin(`GET /projects?key=${key}`);
  expect(named.body.data).toHaveLength(1);

  const project = await system.project("Without a key");
  const projects = [{ id: project.id, role: "admin" }];
  const { token } = await system.operator({ name: "Tenant", role: "member", projects });
  const call = (route: string, body: unknown) => request(system.gateway, route, { token, body });
  expect((await call(`PUT /admin/v1/projects/${project.id}/key`, { key: "free" })).status).toBe(403);
  expect((await call("POST /admin/v1/projects", { project: { name: "x", key: "free" } })).status).toBe(403);
  for (const wrong of ["", "A", "a b", "é", "a".repeat(64), null, { $ne: null }, 7])
    expect((await system.admin(`PUT /projects/${project.id}/key`, { body: { key: wrong } })).status).toBe(422);
  expect((await system.admin("GET /projects?key=$ne")).status).toBe(422);
  show(task, { requests: 32, created: 1 });
});
