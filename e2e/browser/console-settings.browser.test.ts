import { generateKeyPairSync } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { eventually, expectStatus } from "@herald/testing";
import type { Route } from "playwright-core";
import { expect, onTestFinished } from "vitest";
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
  const save = page.getByRole("button", { name: "Save", exact: true });
  const receipts = page.getByLabel("Devices asked for a receipt, in percent");
  // A project always has these; what is cleared is not kept behind the person's back.
  for (const field of [page.getByLabel("Name"), receipts, page.getByLabel("Time zone of devices without one")]) {
    const value = await field.inputValue();
    await field.fill("");
    await expect.poll(() => save.isDisabled()).toBe(true);
    await field.fill(value);
    await expect.poll(() => save.isDisabled()).toBe(false);
  }
  await receipts.fill("7");
  await receipts.press("ArrowUp");
  await staleAfter.fill("soon");
  await save.click();
  await page
    .getByText(/in days or weeks such as/)
    .first()
    .waitFor();
  await staleAfter.fill("90d");
  await save.click();
  await eventually(async () => {
    const { data } = expectStatus(await herald.system.admin(`GET /projects/${project.id}`), 200).body;
    expect(data).toMatchObject({ stale_after: "90d", receipts: 0.08 });
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

test("a list of settings is not polled", async () => {
  const project = await herald.system.project("Not polled");
  const page = await herald.browser.signedIn(`/p/${project.id}`);
  await page.clock.install();
  let reads = 0;
  page.on("request", (sent) => {
    if (new URL(sent.url()).pathname.endsWith(`/projects/${project.id}/tokens`)) reads++;
  });
  await page.goto(`${herald.system.gateway}/console/p/${project.id}/settings/tokens`);
  await page.getByRole("cell", { name: "send, read, devices" }).first().waitFor();
  // Longer than the longest pause between two reads; the second time shows what the first has caused. Answered, because the clock also
  // runs for what is on its way: without an answer in time the console would take Herald for gone, and read all again.
  for (const _ of ["once", "again"]) {
    const polled = page.waitForResponse(/\/admin\/v1\/sessions\/current/);
    await page.clock.runFor(16_000);
    await polled;
  }
  expect(reads).toBe(1);
  expectCalm(page);
});

test("a public key that the API refuses has its sentence beside it, and the right one is in PEM", async () => {
  const project = await herald.system.project("Identity");
  const page = await herald.browser.signedIn(`/p/${project.id}/settings/identity`);
  await page.getByRole("button", { name: "New key" }).click();
  const form = page.getByRole("dialog");
  const field = form.getByLabel("Public key (PEM or JWK)");
  await field.fill("no key");
  await form.getByRole("button", { name: "Create key" }).click();
  await form
    .locator(".mantine-Textarea-root", { has: page.getByLabel("Public key (PEM or JWK)") })
    .getByText(/^must be one PEM block/)
    .waitFor();
  const { publicKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  await field.fill(publicKey.export({ type: "spki", format: "pem" }).toString());
  await form.getByRole("button", { name: "Create key" }).click();
  await page.getByRole("cell", { name: "ES256" }).waitFor();
  // A public key has no secret to show.
  await form.waitFor({ state: "detached" });
  expectCalm(page);
});

test("a new webhook whose secret was lost on its way says so", async () => {
  const project = await herald.system.project("Lost secret");
  const page = await herald.browser.signedIn(`/p/${project.id}/settings/webhooks`);
  await page.getByRole("button", { name: "New webhook" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("URL").fill("http://127.0.0.1:1/herald");
  const loseResponse = async (route: Route) => {
    await route.fetch();
    await route.abort();
  };
  await page.route("**/api/v1/webhooks", loseResponse, { times: 1 });
  await dialog.getByRole("button", { name: "Create webhook" }).click();
  await dialog.getByText("The response with the secret was lost.").waitFor();
  expectCalm(page);
});

test("a message stays open while its list becomes empty", async () => {
  let status = 500;
  const receiver = createServer((_, response) => response.writeHead(status).end());
  receiver.listen(0, "127.0.0.1");
  await once(receiver, "listening");
  onTestFinished(() => void receiver.close());
  const url = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/`;

  const project = await herald.system.project("Webhook messages");
  const webhook = expectStatus(await project.call("POST /webhooks", { body: { webhook: { url } } }), 201).body.data;
  const page = await herald.browser.signedIn(`/p/${project.id}/settings/webhooks/${webhook.id}?status=failed`);
  await page.getByRole("button", { name: "Send a test message" }).click();
  await page.locator("tbody button").first().click();
  const dialog = page.getByRole("dialog");
  await dialog.getByText("failed").first().waitFor();
  status = 204;
  const messages = `/webhooks/${webhook.id}/messages`;
  const [message] = expectStatus(await project.call(`GET ${messages}`), 200).body.data;
  expectStatus(await project.call(`POST ${messages}/${message.id}/resend`), 202);
  await page.getByText("No messages").waitFor();
  await dialog.getByText("delivered").waitFor();
  expectCalm(page);
});
