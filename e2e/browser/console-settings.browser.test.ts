import { generateKeyPairSync } from "node:crypto";
import { eventually, expectStatus } from "@herald/testing";
import { expect } from "vitest";
import { apnsToken } from "../harness/project.ts";
import { logOnFailure } from "../harness/system.ts";
import { expectCalm } from "./console-page.ts";
import { type SharedConsole, test } from "./shared-console.ts";

/** Changes in the console's settings, in a real Chromium against a running system. */

let herald: SharedConsole;
test.beforeAll(({ herald: shared }) => {
  herald = shared;
});
logOnFailure(() => herald?.system);

test("the settings show how much of a limit is in use, and refuse a wrong time before devices become inactive", async () => {
  const project = await herald.system.project("Limits");
  await project.register();
  const page = await herald.browser.signedIn(`/p/${project.id}/settings`);
  const staleAfter = page.getByLabel("Devices become inactive after");
  await staleAfter.fill("soon");
  await page.getByRole("button", { name: "Save", exact: true }).click();
  await page
    .getByText(/in days or weeks such as/)
    .first()
    .waitFor();
  await staleAfter.fill("90d");
  await page.getByRole("button", { name: "Save", exact: true }).click();
  await eventually(async () => {
    const { data } = expectStatus(await herald.system.admin(`GET /projects/${project.id}`), 200).body;
    expect(data.stale_after).toBe("90d");
  });
  await page.getByRole("tab", { name: "Limits" }).click();
  const devices = page.getByRole("row").filter({ hasText: "HERALD_REGISTRY_QUOTA_DEVICES" });
  await devices.getByRole("cell", { name: "1", exact: true }).waitFor();
  expectCalm(page);
});

test("a further app of the team is added to APNs, and a device shows its app and its push types", async () => {
  const project = await herald.system.project("Apps");
  const app = "com.example.driver";
  const { device } = await project.register({ app });
  for (const type of ["voip", "controls/gate"])
    expectStatus(
      await project.call(`PUT /devices/${device.id}/tokens/${type}`, { body: { token: { token: apnsToken() } } }),
      204,
    );
  const page = await herald.browser.signedIn(`/p/${project.id}/devices/${device.id}`);
  await page.getByText(app, { exact: true }).waitFor();
  await page.getByText("voip, controls (gate)", { exact: true }).waitFor();

  await page.goto(page.url().replace(/\/devices.*/, "/settings/providers"));
  await page.getByRole("button", { name: "Replace" }).first().click();
  const form = page.getByRole("dialog");
  await form.getByLabel("Further bundle ids").fill(`${app}\ncom.example.rider`);
  const { privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  await form.getByLabel("Private key").fill(privateKey.export({ type: "pkcs8", format: "pem" }).toString());
  await form.getByRole("button", { name: "Save" }).click();
  await form.waitFor({ state: "detached" });
  const { data } = expectStatus(await herald.system.admin(`GET /projects/${project.id}/providers/apns`), 200).body;
  expect(data.settings.bundle_ids).toEqual([app, "com.example.rider"]);
  expectCalm(page);
});

test("a new token may not export unless that is chosen, and then it may", async () => {
  const project = await herald.system.project("Exports");
  await project.register();
  const page = await herald.browser.signedIn(`/p/${project.id}/settings/tokens`);
  const form = page.getByRole("dialog");
  const makeToken = async (name: string, choose: () => Promise<void>): Promise<string> => {
    await page.getByRole("button", { name: "New token" }).click();
    await form.getByLabel("Name").fill(name);
    expect(await form.getByLabel("export").isChecked()).toBe(false);
    await choose();
    await form.getByRole("button", { name: "Create token" }).click();
    const token = (await page.locator("pre.code", { hasText: "hpt_" }).textContent()) ?? "";
    await form.getByRole("button", { name: "Close" }).last().click();
    await form.waitFor({ state: "detached" });
    return token;
  };
  const backend = await makeToken("backend", async () => {});
  const warehouse = await makeToken("warehouse", async () => {
    await form.getByLabel("export").check();
    for (const scope of ["send", "devices"]) await form.getByLabel(scope).uncheck();
  });
  await page
    .getByRole("row", { name: /^warehouse/ })
    .getByRole("cell", { name: "read, export" })
    .waitFor();
  await page
    .getByRole("row", { name: /^backend/ })
    .getByRole("cell", { name: "send, read, devices" })
    .waitFor();
  expectStatus(await project.call("GET /exports/devices", { token: backend }), 403);
  expectStatus(await project.call("GET /exports/devices", { token: warehouse }), 200);
  expectStatus(await project.call("GET /topics", { token: warehouse }), 200);
  expectStatus(await project.call("POST /topics", { token: warehouse, body: { topic: { name: "x" } } }), 403);
  expectCalm(page);
});
