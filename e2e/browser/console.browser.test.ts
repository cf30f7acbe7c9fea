import { generateKeyPairSync } from "node:crypto";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { eventually, expectStatus, operateBroker, request } from "@herald/testing";
import { expect } from "vitest";
import { apnsToken } from "../harness/project.ts";
import { settingsFor } from "../harness/providers.ts";
import { logOnFailure } from "../harness/system.ts";
import { expectCalm, isMarked, mark, showsSentences } from "./console-page.ts";
import { type SharedConsole, test } from "./shared-console.ts";

/** The main tasks in the console, in a real Chromium against a running system. */

let herald: SharedConsole;
test.beforeAll(({ herald: shared }) => {
  herald = shared;
});
logOnFailure(() => herald?.system);

const addresses = async () => expectStatus(await request(herald.system.simulators.url, "GET /info"), 200).body;
const rulesOfSimulators = async () =>
  expectStatus(await request(herald.system.simulators.url, "GET /script"), 200).body.rules;

test("a typed token signs in and is stored nowhere; a reload keeps the session", async () => {
  const page = await herald.browser.open();
  await page.getByLabel("Operator token").fill("wrong-token-that-is-long-enough");
  await page.getByRole("button", { name: "Sign in" }).click();
  const refusal = page.getByRole("alert");
  await refusal.getByText("This sign-in is not valid").waitFor();
  await refusal.getByText("Check that you copied the whole token").waitFor();
  // The sentence for programs names headers and fields of requests.
  const forPrograms = refusal.getByText("authorization");
  expect(await forPrograms.isVisible()).toBe(false);
  await refusal.getByText("Details").click();
  await forPrograms.waitFor();
  await page.getByLabel("Operator token").fill(herald.system.adminToken);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("heading", { name: "Overview" }).waitFor();
  const stored = await page.evaluate(
    "JSON.stringify([{ ...localStorage }, { ...sessionStorage }, document.cookie, location.href])",
  );
  expect(stored).not.toContain(herald.system.adminToken);
  expect(stored).not.toContain("herald_session");
  await page.reload();
  await page.getByRole("heading", { name: "Overview" }).waitFor();
  await page.getByRole("button", { name: /^Account/ }).click();
  await page.getByRole("menuitem", { name: "Sign out" }).click();
  await page.getByLabel("Operator token").waitFor();
  await page.reload();
  await page.getByLabel("Operator token").waitFor();
  expectCalm(page);
});

test("a link signs in once, and its code disappears from the address", async () => {
  const { body } = await herald.system.admin("POST /sessions/codes");
  const { code } = body.data;
  const page = await herald.browser.open(`/#code=${code}`);
  await page.getByRole("heading", { name: "Overview" }).waitFor();
  expect(page.url()).not.toContain(code);
  const again = await herald.browser.open(`/#code=${code}`);
  await again.getByText("each link works once").waitFor();
  expect(again.url()).not.toContain(code);
});

test("from an empty project to an open without a reload", async () => {
  const page = await herald.browser.signedIn();
  await mark(page);
  await page.getByRole("button", { name: /^Project/ }).click();
  await page.getByRole("button", { name: "New project" }).click();
  await page.getByLabel("Name").fill("Journey");
  await page.getByRole("button", { name: "Create project" }).click();
  const token = (await page.locator("pre.code").textContent()) ?? "";
  expect(token).toMatch(/^hpt_/);
  await page.getByRole("button", { name: "Continue" }).click();
  await page.getByText("Add a provider").click();

  const { ca, apns } = await addresses();
  const settings = settingsFor("apns", { ca, apns } as never) as unknown as Record<string, string>;
  const panel = page.locator("section.panel", { hasText: "Apple Push Notification service" });
  await panel.getByRole("button", { name: "Add", exact: true }).click();
  const form = page.getByRole("dialog");
  await form.getByLabel("Key id").fill(settings.key_id ?? "");
  await form.getByLabel("Team id").fill(settings.team_id ?? "");
  await form.getByLabel("Bundle id", { exact: true }).fill(settings.bundle_id ?? "");
  await form.getByLabel("Private key (.p8)").fill("no key");
  await form.getByText("sandbox").click();
  await form.getByText("Use a different server").click();
  // It stays open while what opened it is replaced.
  for (const endpoint of ["https://wrong.example.com", "", apns]) await form.getByLabel("Endpoint").fill(endpoint);
  await form.getByLabel("Certificate authority (PEM)").fill(ca);
  await form.getByRole("button", { name: "Save" }).click();
  await form
    .locator(".mantine-Textarea-root", { has: page.getByLabel("Private key (.p8)") })
    .getByText(/^is not a private key in PEM form/)
    .waitFor();
  await form.getByLabel("Private key (.p8)").fill(settings.private_key ?? "");
  await form.getByRole("button", { name: "Save" }).click();
  await panel.getByText("active").waitFor();

  const device = { token: apnsToken(), platform: "ios" };
  expectStatus(await request(herald.system.gateway, "POST /api/v1/devices", { token, body: { device } }), 201);
  await page.getByRole("link", { name: "Compose" }).first().click();
  await page.getByLabel("Title").fill("First of all");
  await page.getByLabel("Targets").first().fill("all");
  await page.keyboard.press("Enter");
  await page.getByRole("button", { name: "Send to 1 device…" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Send to 1 device" }).click();
  await page.getByRole("heading", { name: /First of all/ }).waitFor();
  await page.locator(".mantine-Badge-root", { hasText: "completed" }).first().waitFor();

  const phone = await herald.browser.visit(herald.system.simulators.url);
  await phone.getByRole("listitem").filter({ hasText: "First of all" }).getByRole("button", { name: "Open" }).click();
  await phone.getByRole("button", { name: "Opened" }).waitFor();
  await page.locator(".funnel li", { hasText: "Opened" }).locator("b", { hasText: "1" }).waitFor();
  await page.locator("tbody .mantine-Badge-root", { hasText: "opened" }).waitFor();
  expect(await isMarked(page)).toBe(true);
  expectCalm(page);
});

test("the trace explains why a device got nothing", async () => {
  const project = await herald.system.project("Trace");
  const { device } = await project.register({ token: apnsToken("ab") });
  const { id } = await project.send({ title: "For others", targets: ["topic:others"] });
  await project.final(id);
  const page = await herald.browser.signedIn(`/p/${project.id}/trace`);
  await page.getByRole("textbox", { name: /Device id, push token/ }).fill(device.token);
  await page.getByRole("button", { name: "Find" }).click();
  await page.getByRole("link", { name: device.id }).click();
  await page.getByLabel(/Notification id/).fill(id);
  await page.getByRole("button", { name: "Why?" }).click();
  const trace = expectStatus(await project.call(`GET /notifications/${id}/devices/${device.id}`), 200).body.data;
  await showsSentences(page, trace.explanation);
  expectCalm(page);
});

test("a device is subscribed to a topic and unsubscribed, then deactivated", async () => {
  const project = await herald.system.project("One device");
  const { device } = await project.register({ token: apnsToken("ae") });
  const page = await herald.browser.signedIn(`/p/${project.id}/devices/${device.id}`);
  await page.getByLabel("Topic to subscribe to").fill("news");
  await page.getByRole("button", { name: "Add", exact: true }).click();
  await page.getByRole("button", { name: "Unsubscribe from news" }).click();
  await page.getByText("Not subscribed to any topic.").waitFor();
  await page.getByRole("button", { name: "Deactivate" }).click();
  await page.getByRole("button", { name: "Activate", exact: true }).waitFor();
  expectCalm(page);
});

test("a draft goes to one device first, and the dialog shows its trace", async () => {
  const project = await herald.system.project("One device first");
  const { device } = await project.register({ token: apnsToken("ad") });
  const page = await herald.browser.signedIn(`/p/${project.id}/compose`);
  let dryRuns = 0;
  page.on("request", (sent) => {
    if (sent.postData()?.includes('"dry_run":true')) dryRuns++;
  });
  await page.getByLabel("Targets").first().fill("all");
  await page.keyboard.press("Enter");
  await page.getByLabel("Title").fill("Only for you");
  await page.getByRole("button", { name: "Send to 1 device…" }).waitFor();
  const before = dryRuns;
  expect(before).toBeGreaterThan(0);
  // What the page shows is read again after the test; the dry run, which has a quota, is not.
  const readAgain = page.waitForRequest(/\/templates\?/);
  await page.getByRole("button", { name: "Send to one device first" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Device").fill(`device:${device.id}`);
  await dialog.getByRole("button", { name: "Send to this device" }).click();
  await dialog.getByRole("status").getByText("accepted", { exact: true }).waitFor();
  const [sent] = expectStatus(await project.call(`GET /devices/${device.id}/notifications`), 200).body.data;
  const path = `GET /notifications/${sent.notification.id}/devices/${device.id}`;
  const trace = expectStatus(await project.call(path), 200).body.data;
  await showsSentences(page, trace.explanation);
  await readAgain;
  expect(dryRuns).toBe(before);
  expectCalm(page);
});

test("sets a wrong APNs key and reads the provider's sentence from the test push, then the right one", async () => {
  const { id } = herald.system.example.project;
  const secrets = JSON.parse(await readFile(join(herald.system.folder, ".herald/secrets.json"), "utf8"));
  const { privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const page = await herald.browser.signedIn(`/p/${id}/settings/providers`);
  const panel = page.locator("section.panel", { hasText: "Apple Push Notification service" });
  const replaceKey = async (key: string) => {
    await panel.getByRole("button", { name: "Replace" }).click();
    await page.getByRole("dialog").getByLabel("Private key (.p8)").fill(key);
    await page.getByRole("dialog").getByRole("button", { name: "Save" }).click();
    await page.getByRole("dialog").waitFor({ state: "detached" });
  };
  const testPush = async () => {
    await panel.getByRole("button", { name: "Send a test push" }).click();
    await page.getByLabel("Push token").fill(apnsToken());
    await page.getByRole("dialog").getByRole("button", { name: "Send", exact: true }).click();
  };

  await replaceKey(privateKey.export({ type: "pkcs8", format: "pem" }).toString());
  await testPush();
  await page.getByText("credential-refused").waitFor();
  await page.getByText("InvalidProviderToken").first().waitFor();
  await page.keyboard.press("Escape");

  await replaceKey(secrets.apnsKey);
  await testPush();
  await page.getByRole("status").getByText("accepted", { exact: true }).waitFor();
  expectCalm(page);
});

test("a failure switched on in the simulators' page is the reason in the delivery trace", async () => {
  const project = await herald.system.project("Switches");
  const { device } = await project.register();
  const phone = await herald.browser.visit(herald.system.simulators.url);
  const removed = phone.getByRole("checkbox", { name: "APNs: app removed" });
  const late = phone.getByRole("checkbox", { name: "All: answer after 2 s" });
  await removed.check();
  await late.check();
  await expect.poll(rulesOfSimulators).toHaveLength(2);
  const page = await herald.browser.signedIn(`/p/${project.id}/notifications`);
  const { id } = await project.send({ title: "To a phone without the app", targets: ["all"] });
  await page.getByRole("link", { name: /To a phone without the app/ }).click();
  await page.getByRole("link", { name: "unregistered" }).waitFor();
  // It completed, and reached no device: that is no success. The provider's word is Herald's reason in other letters.
  const badge = page.locator("h1 .mantine-Badge-root");
  await expect.poll(() => badge.getAttribute("style")).toContain("var(--warn)");
  const reason = page.getByRole("cell", { name: "unregistered" });
  expect(await reason.textContent()).toMatch(/^unregistered\s*$/);
  await page.setViewportSize({ width: 360, height: 800 });
  const { x = 0, width = 0 } = (await reason.boundingBox()) ?? {};
  expect(width).toBeGreaterThan(0);
  expect(x + width).toBeLessThanOrEqual(360);
  await page.setViewportSize({ width: 1280, height: 900 });
  await page.getByRole("link", { name: device.id }).click();
  const trace = await eventually(async () => {
    const { data } = expectStatus(await project.call(`GET /notifications/${id}/devices/${device.id}`), 200).body;
    expect(data.status).toBe("failed");
    return data;
  });
  expect(trace.attempts.at(-1).provider_reason).toContain("Unregistered");
  await showsSentences(page, trace.explanation);
  await page.getByText("Unregistered").first().waitFor();
  const refused = phone.getByRole("listitem").filter({ hasText: "To a phone without the app" });
  await refused.getByText("410 Unregistered").waitFor();
  expect(await refused.getByRole("button", { name: "Open" }).count()).toBe(0);

  await removed.uncheck();
  await late.uncheck();
  await expect.poll(rulesOfSimulators).toEqual([]);
  expectCalm(page);
});

test("a dead letter is found and replayed", async () => {
  const project = await herald.system.project("Dead letters");
  const broker = await operateBroker(herald.system.broker);
  await broker.publish(`push.cmd.v1.dispatch.send.${project.id}.x`, "no JSON");
  await broker.close();
  await eventually(async () => expect((await herald.system.admin("GET /dead-letters")).body.data).not.toHaveLength(0));
  const page = await herald.browser.signedIn(`/p/${project.id}/operations/letters`);
  await page.getByRole("button", { name: /schema/ }).waitFor();
  expect(await page.locator("tbody tr").count()).toBe(1);
  const elsewhere = await herald.system.project("Without dead letters");
  const other = await herald.browser.signedIn(`/p/${elsewhere.id}/operations/letters`);
  await other.getByText("No dead letters").waitFor();
  await other.getByRole("switch", { name: "All projects" }).click();
  await other
    .getByRole("button", { name: /schema/ })
    .first()
    .waitFor();
  await page.locator("tbody button").first().click();
  await page.getByRole("button", { name: "Replay", exact: true }).click();
  await page.getByRole("status").getByText("replayed").waitFor();
  expectCalm(page);
});

test("the audit log shows who changed what, checks its rows and exports them", async () => {
  const project = await herald.system.project("Audit");
  const page = await herald.browser.signedIn(`/p/${project.id}/operations/operators`);
  await page.getByRole("button", { name: "New operator" }).click();
  await page.getByRole("dialog").getByLabel("Name").fill("Maria Lopez");
  await page.getByRole("dialog").getByRole("button", { name: "Create operator" }).click();
  await page.locator("pre.code", { hasText: "hop_" }).waitFor();
  await page.getByRole("dialog").getByRole("button").last().click();
  await page.getByRole("tab", { name: "Audit log" }).click();
  await page
    .getByRole("button", { name: /^createOperator/ })
    .first()
    .click();
  await page.getByRole("dialog").getByText("Maria Lopez").waitFor();
  await page.keyboard.press("Escape");

  await page.getByRole("textbox", { name: "Action" }).fill("createProject");
  await page.keyboard.press("Enter");
  await page
    .getByRole("button", { name: /^createOperator/ })
    .first()
    .waitFor({ state: "detached" });
  await page
    .getByRole("button", { name: /^createProject/ })
    .first()
    .waitFor();
  const download = page.waitForEvent("download");
  await page.getByRole("link", { name: "Export as NDJSON" }).click();
  const lines = (await readFile(await (await download).path(), "utf8")).trim().split("\n");
  expect(new Set(lines.map((line) => JSON.parse(line).action))).toEqual(new Set(["createProject"]));

  await page.getByRole("button", { name: "Check all rows" }).click();
  await page.getByRole("status").getByText("rows are unchanged and none is missing").waitFor();
  expectCalm(page);
});

test("notifications are filtered by a label, and a wrong one is explained", async () => {
  const project = await herald.system.project("Labels");
  await project.send({ title: "In spring", targets: ["all"], labels: { campaign: "spring" } });
  await project.send({ title: "In autumn", targets: ["all"], labels: { campaign: "autumn" } });
  const page = await herald.browser.signedIn(`/p/${project.id}/notifications`);
  await page.getByRole("link", { name: /In autumn/ }).waitFor();
  const filter = page.getByRole("textbox", { name: /^Label/ });
  await filter.fill("campaign:spring");
  await page.keyboard.press("Enter");
  await page.getByRole("link", { name: /In autumn/ }).waitFor({ state: "detached" });
  await page.getByRole("link", { name: /In spring/ }).waitFor();
  await filter.fill("spring");
  await page.keyboard.press("Enter");
  await page.getByRole("alert").getByText("label").waitFor();
  expectCalm(page);
});
