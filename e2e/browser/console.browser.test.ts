import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { eventually, expectStatus, operateBroker, request } from "@herald/testing";
import { afterAll, beforeAll, expect, test } from "vitest";
import { apnsToken } from "../harness/project.ts";
import { settingsFor } from "../harness/providers.ts";
import { payloadOf } from "../harness/simulators.ts";
import { logOnFailure, type System, startSystem } from "../harness/system.ts";
import { type ConsoleBrowser, type ConsolePage, expectCalm, startConsoleBrowser } from "./console-page.ts";

/** The console in a real Chromium, served by a running system. */

let system: System;
let browser: ConsoleBrowser;
beforeAll(async () => {
  system = await startSystem({ console: true, env: { HERALD_GATEWAY_QUOTA_DRY_RUNS: "20" } });
  browser = await startConsoleBrowser(system);
});
afterAll(async () => {
  await browser?.close();
  await system?.stop();
});
logOnFailure(() => system);

const addresses = async () => expectStatus(await request(system.simulators.url, "GET /info"), 200).body;

/** Marks the document, so that a reload would show. */
const mark = (page: ConsolePage) => page.evaluate("window.sameDocument = true");
const isMarked = (page: ConsolePage) => page.evaluate("window.sameDocument === true");

test("a typed token signs in, stays nowhere, and a reload keeps the session", async () => {
  const page = await browser.open();
  await page.getByLabel("Operator token").fill("wrong-token-that-is-long-enough");
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("alert").getByText("authorization").waitFor();
  await page.getByLabel("Operator token").fill(system.adminToken);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("heading", { name: "Overview" }).waitFor();
  const stored = await page.evaluate(
    "JSON.stringify([{ ...localStorage }, { ...sessionStorage }, document.cookie, location.href])",
  );
  expect(stored).not.toContain(system.adminToken);
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

test("a link signs in once, and its code is gone from the address", async () => {
  const { body } = await system.admin("POST /sessions/codes");
  const { code } = body.data;
  const page = await browser.open(`/#code=${code}`);
  await page.getByRole("heading", { name: "Overview" }).waitFor();
  expect(page.url()).not.toContain(code);
  const again = await browser.open(`/#code=${code}`);
  await again.getByText("a link signs in once").waitFor();
  expect(again.url()).not.toContain(code);
});

test("from an empty project to an open without a reload", async () => {
  const page = await browser.signedIn();
  await mark(page);
  await page.getByRole("button", { name: /^Project/ }).click();
  await page.getByRole("menuitem", { name: "New project…" }).click();
  await page.getByLabel("Name").fill("Journey");
  await page.getByRole("button", { name: "Create project" }).click();
  const token = (await page.locator("pre.code").textContent()) ?? "";
  expect(token).toMatch(/^hpt_/);
  await page.getByRole("button", { name: "Continue" }).click();
  await page.getByText("Give the project a provider").click();

  const { ca, apns } = await addresses();
  const settings = settingsFor("apns", { ca, apns } as never) as unknown as Record<string, string>;
  const panel = page.locator("section.panel", { hasText: "Apple Push Notification service" });
  await panel.getByRole("button", { name: "Add" }).click();
  const form = page.getByRole("dialog");
  await form.getByLabel("Key id").fill(settings.key_id ?? "");
  await form.getByLabel("Team id").fill(settings.team_id ?? "");
  await form.getByLabel("Bundle id").fill(settings.bundle_id ?? "");
  await form.getByLabel("Private key (.p8)").fill("no key");
  await form.getByText("sandbox").click();
  await form.getByText("Another server").click();
  await form.getByLabel("Endpoint").fill(apns);
  await form.getByLabel("Its certificate authority (PEM)").fill(ca);
  await form.getByRole("button", { name: "Save" }).click();
  await form.getByRole("alert").getByText("private_key").waitFor();
  await form.getByLabel("Private key (.p8)").fill(settings.private_key ?? "");
  await form.getByRole("button", { name: "Save" }).click();
  await panel.getByText("active").waitFor();

  const device = { token: apnsToken(), platform: "ios" };
  expectStatus(await request(system.gateway, "POST /api/v1/devices", { token, body: { device } }), 201);
  await page.getByRole("link", { name: "Compose" }).first().click();
  await page.getByLabel("Title").fill("First of all");
  await page.getByLabel("Targets").first().fill("all");
  await page.keyboard.press("Enter");
  await page.getByRole("button", { name: "Send to 1 device…" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Send to 1 device" }).click();
  await page.getByRole("heading", { name: /First of all/ }).waitFor();
  await page.locator(".status", { hasText: "completed" }).first().waitFor();
  const pushes = await system.simulators.pushes({ token: device.token });
  const payload = payloadOf(pushes[0] as never);
  const open = { project_id: payload.project_id, token: payload.token };
  expectStatus(
    await request(system.gateway, `PUT /api/v1/notifications/${payload.notification_id}/open`, { body: open }),
    204,
  );
  await page.locator("tbody .status", { hasText: "opened" }).waitFor();
  expect(await isMarked(page)).toBe(true);
  expectCalm(page);
});

test("a draft outlives a reload", async () => {
  const project = await system.project("Drafts");
  const page = await browser.signedIn(`/p/${project.id}/compose`);
  await page.getByLabel("Title").fill("Half written");
  await page.reload();
  await expect.poll(() => page.getByLabel("Title").inputValue(), { timeout: 15_000 }).toBe("Half written");
});

test("the trace says why a device got nothing", async () => {
  const project = await system.project("Trace");
  const { device } = await project.register({ token: apnsToken("ab") });
  const { id } = await project.send({ title: "For others", targets: ["topic:others"] });
  await project.final(id);
  const page = await browser.signedIn(`/p/${project.id}/trace`);
  await page.getByRole("textbox", { name: /Device id, push token/ }).fill(device.token);
  await page.getByRole("button", { name: "Find" }).click();
  await page.getByRole("link", { name: device.id }).click();
  await page.getByLabel(/Notification id/).fill(id);
  await page.getByRole("button", { name: "Why?" }).click();
  const trace = expectStatus(await project.call(`GET /notifications/${id}/devices/${device.id}`), 200).body.data;
  for (const sentence of trace.explanation) await page.getByText(sentence).first().waitFor();
  expectCalm(page);
});

test("a test push with a wrong key shows what APNs said", async () => {
  const project = await system.project("Wrong key");
  await system.simulators.script([
    { provider: "apns", tokenPrefix: "bad", status: 403, reason: "InvalidProviderToken" },
  ]);
  const page = await browser.signedIn(`/p/${project.id}/settings/providers`);
  await page.getByRole("button", { name: "Send a test push" }).click();
  await page.getByLabel("Push token").fill(apnsToken("bad"));
  await page.getByRole("dialog").getByRole("button", { name: "Send", exact: true }).click();
  await page.getByText("credential-refused").waitFor();
  await page.getByText("InvalidProviderToken").first().waitFor();
  await system.simulators.script([]);
});

test("a dead letter is found, replayed, and says so", async () => {
  const project = await system.project("Dead letters");
  const broker = await operateBroker(system.broker);
  await broker.publish(`push.cmd.v1.dispatch.send.${project.id}.x`, "no JSON");
  await broker.close();
  await eventually(async () => expect((await system.admin("GET /dead-letters")).body.data).not.toHaveLength(0));
  const page = await browser.signedIn(`/p/${project.id}/operations/letters`);
  await page.getByRole("switch", { name: "All projects" }).click();
  await page.locator("tbody button").first().click();
  await page.getByRole("button", { name: "Replay", exact: true }).click();
  await page.getByRole("status").getByText("replayed").waitFor();
  expectCalm(page);
});

test("the audit log shows who changed what, checks its rows and exports them", async () => {
  const project = await system.project("Audit");
  const page = await browser.signedIn(`/p/${project.id}/operations/operators`);
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
  const project = await system.project("Labels");
  await project.send({ title: "In spring", targets: ["all"], labels: { campaign: "spring" } });
  await project.send({ title: "In autumn", targets: ["all"], labels: { campaign: "autumn" } });
  const page = await browser.signedIn(`/p/${project.id}/notifications`);
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

test("a quota that is used up is said with the time to come back, and the draft stays", async () => {
  const project = await system.project("Quota");
  const body = { notification: { title: "Counted", targets: ["all"], dry_run: true } };
  const answers = await Promise.all(Array.from({ length: 21 }, () => project.call("POST /notifications", { body })));
  expect(answers.filter(({ status }) => status === 429)).toHaveLength(1);
  const page = await browser.signedIn(`/p/${project.id}/compose`);
  await page.getByLabel("Title").fill("Nearly done");
  await page.getByLabel("Targets").first().fill("all");
  await page.keyboard.press("Enter");
  await page
    .getByRole("alert")
    .getByText(/at most 20 in 60 s are accepted here; come back in \d+ s/)
    .waitFor();
  expect(await page.getByLabel("Title").inputValue()).toBe("Nearly done");
  await page.reload();
  await expect.poll(() => page.getByLabel("Title").inputValue(), { timeout: 15_000 }).toBe("Nearly done");
  expectCalm(page);
});

test("the overview names a provider that is paused, and one that cannot be reached", async () => {
  const project = await system.project("Attention", ["apns", "fcm"]);
  await system.simulators.script([
    { provider: "apns", tokenPrefix: "bad", status: 403, reason: "InvalidProviderToken" },
  ]);
  await system.putProvider(project, "fcm", { endpoint: "https://127.0.0.1:1" });
  await project.register({ token: apnsToken("bad") });
  await project.register({ platform: "android", token: "a-token-that-nobody-takes" });
  await project.send({ title: "Stuck", targets: ["all"] });
  const page = await browser.signedIn(`/p/${project.id}`);
  await page.getByRole("link", { name: "apns is paused" }).waitFor({ timeout: 40_000 });
  await page.getByRole("link", { name: "fcm cannot be reached" }).waitFor({ timeout: 40_000 });
  await system.simulators.script([]);
  expectCalm(page);
});

test("words from outside stay words: HTML, scripts, emoji, right to left", { timeout: 120_000 }, async () => {
  const project = await system.project('<img src=x onerror="alert(1)"> שלום');
  const nasty = '<img src=x onerror="alert(1)"><script>alert(2)</script> 🎉 مرحبا';
  const user = '<img-src=x-onerror="alert(7)">';
  const { device } = await project.register({
    metadata: { note: nasty, plan: "javascript:alert(3)" },
    user_id: user,
  });
  const { id } = await project.send({
    title: nasty,
    body: nasty,
    targets: [device.id, `metadata:note=${nasty}`],
    link_to: "/javascript:alert(4)",
    image: "https://example.com/javascript:alert(5).png",
  });
  await project.final(id);
  const paths = [
    "",
    "/notifications",
    `/notifications/${id}`,
    `/notifications/${id}/devices/${device.id}`,
    "/devices",
    `/devices/${device.id}`,
    "/users",
    `/users/${encodeURIComponent(user)}`,
    "/settings",
  ];
  const page = await browser.signedIn(`/p/${project.id}`);
  for (const path of paths) {
    await page.goto(`${system.gateway}/console/p/${project.id}${path}`);
    await page.getByRole("heading", { level: 1 }).waitFor();
    await page.locator(".mantine-Skeleton-root").first().waitFor({ state: "detached" });
    expect(await page.locator('#root img:not([src="/console/icon.svg"])').count()).toBe(0);
    expect(await page.locator('a[href^="javascript:"]').count()).toBe(0);
    expectCalm(page);
  }
  await page.goto(`${system.gateway}/console/p/${project.id}/compose`);
  await page.getByLabel("Title").fill(nasty);
  await page.getByLabel("Link").fill("javascript:alert(6)");
  await page.getByLabel("Targets").first().fill("all");
  await page.keyboard.press("Enter");
  await page
    .getByText(/link_to/)
    .first()
    .waitFor();
  expectCalm(page);
});

test("when the gateway is gone the page says so, and goes on when it is back", { timeout: 120_000 }, async () => {
  const project = await system.project("Gone");
  const page = await browser.signedIn(`/p/${project.id}/notifications`);
  await page.getByText("No notifications yet").waitFor();
  await mark(page);
  await page.context().setOffline(true);
  await page.getByText("Herald does not answer").first().waitFor({ timeout: 40_000 });
  await page.context().setOffline(false);
  await page.getByText("Herald does not answer").first().waitFor({ state: "detached", timeout: 40_000 });
  expect(await isMarked(page)).toBe(true);
});

test("a session that ends while the page is open asks to sign in, and what was written stays", async () => {
  const project = await system.project("Ends");
  const { body } = await system.admin("POST /operators", { body: { operator: { name: "Leaving", role: "admin" } } });
  const page = await browser.open(`/p/${project.id}/compose`);
  await page.getByLabel("Operator token").fill(body.token);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByLabel("Title").fill("Still here");
  expectStatus(await system.admin(`DELETE /operators/${body.data.id}`), 204);
  const dialog = page.getByRole("dialog");
  await dialog.getByText("Your session has ended").waitFor({ timeout: 40_000 });
  await dialog.getByLabel("Operator token").fill(system.adminToken);
  await dialog.getByRole("button", { name: "Sign in" }).click();
  await dialog.waitFor({ state: "detached" });
  expect(await page.getByLabel("Title").inputValue()).toBe("Still here");
});

test("a viewer reads, and the API's refusal of a change is shown", async () => {
  const project = await system.project("Viewer");
  const { body } = await system.admin("POST /operators", { body: { operator: { name: "Looks", role: "viewer" } } });
  const page = await browser.open(`/p/${project.id}/settings`);
  await page.getByLabel("Operator token").fill(body.token);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByLabel("Name").fill("Taken over");
  await page.getByRole("button", { name: "Save" }).click();
  await page.getByRole("alert").getByText("`viewer`").waitFor();
});

type Violation = {
  readonly id: string;
  readonly impact: string | null;
  readonly nodes: readonly { readonly html: string }[];
};

/** What axe-core calls serious or worse. */
const seriousProblems = async (page: ConsolePage): Promise<string[]> => {
  const axe = await readFile(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
  await page.evaluate(axe); // the policy refuses a script element, not the debugger
  const { violations } = (await page.evaluate("axe.run(document)")) as { violations: readonly Violation[] };
  return violations
    .filter(({ impact }) => impact === "serious" || impact === "critical")
    .map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html.slice(0, 160)).join(" | ")}`);
};

test.for([false, true])("no page has a serious finding of axe (dark: %s)", { timeout: 240_000 }, async (dark) => {
  const project = await system.project("Axe", ["apns", "webpush"]);
  const { device } = await project.register({ topics: ["news"], user_id: "u_1", metadata: { plan: "pro" } });
  const { id } = await project.send({ title: "Hello", body: "Words", targets: ["topic:news"], link_to: "/x" });
  await project.final(id);
  const paths = [
    "",
    "/compose",
    "/notifications",
    `/notifications/${id}`,
    `/notifications/${id}/devices/${device.id}`,
    "/trace",
    "/devices",
    `/devices/${device.id}`,
    "/topics",
    "/users",
    "/users/u_1",
    "/settings",
    "/settings/providers",
    "/settings/tokens",
    "/settings/webhooks",
    "/settings/identity",
    "/operations",
    "/operations/letters",
    "/operations/operators",
    "/operations/audit",
  ];
  const page = await browser.signedIn(`/p/${project.id}`, { dark });
  const found: Record<string, string[]> = {};
  for (const path of paths) {
    await page.goto(`${system.gateway}/console/p/${project.id}${path}`);
    await page.getByRole("heading", { level: 1 }).waitFor();
    await page.locator(".mantine-Skeleton-root").first().waitFor({ state: "detached" });
    const problems = await seriousProblems(page);
    if (problems.length > 0) found[path] = problems;
  }
  expect(found).toEqual({});
  expectCalm(page);
});

test("the first load is at most 250 KB", async () => {
  const page = await browser.open();
  let bytes = 0;
  const devtools = await page.context().newCDPSession(page);
  await devtools.send("Network.enable");
  devtools.on("Network.loadingFinished", ({ encodedDataLength }) => {
    bytes += encodedDataLength;
  });
  await page.getByLabel("Operator token").fill(system.adminToken);
  await devtools.send("Network.setCacheDisabled", { cacheDisabled: true });
  await page.reload();
  await page.getByRole("button", { name: "Sign in" }).waitFor();
  expect(bytes).toBeGreaterThan(50_000);
  expect(bytes).toBeLessThanOrEqual(250 * 1_024);
});
