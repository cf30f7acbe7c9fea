import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { eventually, request, startIdentityProvider, type TestIdentityProvider } from "@herald/testing";
import { afterAll, expect } from "vitest";
import { commandLine } from "./harness/command-line.ts";
import type { Project } from "./harness/project.ts";
import { test } from "./harness/shared-system.ts";
import { logOnFailure, type System } from "./harness/system.ts";
import { startTwoPorts, type TwoPorts } from "./hostile/second-port.ts";

/** The page on sign-in, as written for Keycloak, with a real OpenID provider that sends Keycloak's claims. */

const page = await readFile(join(import.meta.dirname, "../docs/how-to/sign-in-with-your-company.md"), "utf8");

/** The first block of a language under a heading of the page. */
const blockOf = (heading: string, language: string): string => {
  const part = page.split(`\n## ${heading}\n`)[1]?.split("\n## ")[0] ?? "";
  const block = new RegExp(`\`\`\`${language}\n([^]*?)\`\`\``).exec(part)?.[1];
  if (block === undefined) throw new Error(`no ${language} under ${heading}`);
  return block;
};

let system: System;
let project: Project;
let provider: TestIdentityProvider;
let gateway: TwoPorts;

test.beforeAll(async ({ system: shared }) => {
  system = shared;
  project = await system.project("Shop");
  const groups = join(system.folder, "groups.yaml");
  await writeFile(groups, blockOf("Groups", "yaml").replace(/prj_\w+/, project.id));
  const variables = Object.fromEntries(
    blockOf("Herald", "ini")
      .trim()
      .split("\n")
      .map((line) => line.split(/=(.*)/s) as [string, string]),
  );
  expect(Object.keys(variables)).toContain("HERALD_GATEWAY_OIDC_GROUPS_FILE");
  provider = await startIdentityProvider();
  gateway = await startTwoPorts(system, (operators) => ({
    ...variables,
    HERALD_GATEWAY_OIDC_ISSUER: provider.issuer,
    HERALD_GATEWAY_OIDC_CLIENT_SECRET: provider.clientSecret,
    HERALD_GATEWAY_OIDC_URL: operators,
    HERALD_GATEWAY_OIDC_GROUPS_FILE: groups,
  }));
  provider.redirectTo(gateway.operators);
});
afterAll(async () => {
  await gateway?.stop();
  await provider?.stop();
});
logOnFailure(() => system);

test("people of Keycloak's groups have the roles of the page's groups file", async () => {
  const keycloak = {
    name: "Maria Lopez",
    preferred_username: "maria",
    email: "maria@example.com",
    groups: ["shop-team"],
  };
  provider.people.set("f:6c2a:maria", keycloak);
  const came = await provider.signIn(`${gateway.operators}/admin/v1/sign-in/oidc`, "f:6c2a:maria");
  const done = await fetch(came.callback, { redirect: "manual", headers: { cookie: came.cookie } });
  expect([done.status, done.headers.get("location")]).toEqual([303, "/console/"]);
  const cookie =
    done.headers
      .getSetCookie()
      .find((one) => one.startsWith("herald_session="))
      ?.split(";")[0] ?? "";
  const current = await request(gateway.operators, "GET /admin/v1/sessions/current", { headers: { cookie } });
  expect(current.body.data.operator).toMatchObject({
    ...{ name: "Maria Lopez", role: "member", projects: [{ id: project.id, role: "operator" }] },
  });
  await eventually(async () => {
    const rows = await system.admin("GET /audit?action=finishSignIn");
    expect(rows.body.data[0]).toMatchObject({ operator: { name: "Maria Lopez" }, after: { status: "signed-in" } });
  });
});

test("herald login --sso takes the code of the console, and acts as that person", async () => {
  provider.people.set("f:6c2a:jo", { name: "Jo", groups: ["support"] });
  const cli = commandLine({ HOME: join(system.folder, "home-of-jo") });
  const signing = cli.terminal(`herald login --sso --url ${gateway.operators}`);
  await eventually(() => expect(signing.written.stdout).toContain("Code (hoc_…): "));
  const begin = /http\S+sign-in\/oidc\S+/.exec(signing.written.stdout)?.[0] ?? "";
  const came = await provider.signIn(begin, "f:6c2a:jo");
  const done = await fetch(came.callback, { redirect: "manual", headers: { cookie: came.cookie } });
  expect(done.headers.get("location")).toBe("/console/sign-in-code");
  const cookie =
    done.headers
      .getSetCookie()
      .find((one) => one.startsWith("herald_session="))
      ?.split(";")[0] ?? "";
  const { body } = await request(gateway.operators, "GET /admin/v1/sessions/current", { headers: { cookie } });
  const headers = { cookie, "herald-csrf": body.data.csrf_token };
  const made = await request(gateway.operators, "POST /admin/v1/sessions/codes", { headers });
  signing.type(`${made.body.data.code}\r`);
  expect(await signing.ended()).toMatchObject({ exitCode: 0, stdout: expect.stringContaining("Signed in") });
  const { stdout } = await cli.herald("project", "get", project.id);
  expect(stdout).toContain("Shop");
  // The role that counts, not the operator's own.
  expect((await cli.herald("operator", "list")).stdout).toMatch(/Jo +viewer \(by group support; own: member\)/);
  expect((await cli.herald("project", "update", project.id, "--name", "Mine")).exitCode).toBe(3);
});
