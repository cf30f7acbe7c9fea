import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { startIdentityProvider, type TestIdentityProvider } from "@herald/testing";
import { afterAll, expect } from "vitest";
import { logOnFailure } from "../harness/system.ts";
import { startTwoPorts, type TwoPorts } from "../hostile/second-port.ts";
import { type SharedConsole, test } from "./shared-console.ts";

/** Sign-in by a real OpenID provider, in a real Chromium. */

let herald: SharedConsole;
let provider: TestIdentityProvider;
let gateway: TwoPorts;

test.beforeAll(async ({ herald: shared }) => {
  herald = shared;
  const groups = join(herald.system.folder, "groups.yaml");
  await writeFile(groups, "staff: { role: viewer }\nadmins: { role: admin }\n");
  provider = await startIdentityProvider();
  gateway = await startTwoPorts(herald.system, (operators) => ({
    HERALD_GATEWAY_OIDC_ISSUER: provider.issuer,
    HERALD_GATEWAY_OIDC_CLIENT_ID: provider.clientId,
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
logOnFailure(() => herald?.system);

test("a person signs in with the company, changes role, and signs out there too", async () => {
  await herald.system.project("Shop");
  provider.people.set("maria", { name: "Maria Lopez", groups: ["staff"] });
  const page = await herald.browser.visit(`${gateway.operators}/console/`);
  await page.getByRole("link", { name: "Sign in with your company" }).click();
  await page.getByLabel("Name").fill("maria");
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("button", { name: "Account: Maria Lopez viewer" }).waitFor();
  await page.getByRole("link", { name: "Operations" }).click();
  await page.getByRole("tab", { name: "Operators" }).click();
  await page.getByText("in staff").waitFor();
  await page.getByText("viewer by group staff").waitFor();
  expect(await page.getByRole("button", { name: "New operator" }).count()).toBe(0);

  provider.people.set("maria", { name: "Maria Lopez", groups: ["staff", "admins"] });
  await page.goto(`${gateway.operators}/admin/v1/sign-in/oidc?return_to=/console/`);
  await page.getByRole("button", { name: "Account: Maria Lopez admin" }).waitFor();

  await page.getByRole("button", { name: /^Account/ }).click();
  await page.getByRole("menuitem", { name: "Sign out" }).click();
  await page.waitForURL(`${provider.issuer}/**`);
  await page.goto(`${gateway.operators}/console/`);
  await page.getByLabel("Operator token").waitFor();
});

test("a person whom no group lets in is told so, and the command line's page shows a code", async () => {
  provider.people.set("stranger", { name: "A Stranger", groups: [] });
  const page = await herald.browser.visit(`${gateway.operators}/console/`);
  await page.getByRole("link", { name: "Sign in with your company" }).click();
  await page.getByLabel("Name").fill("stranger");
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByText("You may not use Herald yet").waitFor();
  expect(page.url()).not.toContain("sign-in=");
  await page.context().close();

  provider.people.set("jo", { name: "Jo", groups: ["staff"] });
  const other = await herald.browser.visit(
    `${gateway.operators}/admin/v1/sign-in/oidc?return_to=/console/sign-in-code`,
  );
  await other.getByLabel("Name").fill("jo");
  await other.getByRole("button", { name: "Sign in" }).click();
  await other.getByRole("button", { name: "Show a code" }).click();
  expect(await other.locator("pre.code").textContent()).toMatch(/^hoc_/);
});
