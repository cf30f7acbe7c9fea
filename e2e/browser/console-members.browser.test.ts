import { expectStatus, request } from "@herald/testing";
import { expect } from "vitest";
import { logOnFailure } from "../harness/system.ts";
import { type ConsolePage, expectCalm } from "./console-page.ts";
import { type SharedConsole, test } from "./shared-console.ts";

/** The console of operators who may see only their own projects, in a real Chromium against a running system. */

let herald: SharedConsole;
test.beforeAll(({ herald: shared }) => {
  herald = shared;
});
logOnFailure(() => herald?.system);

const newMember = (name: string, projects: readonly { readonly id: string; readonly role: string }[]) =>
  herald.system.operator({ name, role: "member", projects });

const signIn = async (page: ConsolePage, token: string) => {
  await page.getByLabel("Operator token").fill(token);
  await page.getByRole("button", { name: "Sign in" }).click();
};

/** Requests that Herald refused to this page, from now on. */
const refusalsOf = (page: ConsolePage): string[] => {
  const refused: string[] = [];
  page.on("response", (response) => {
    if (response.status() === 403) refused.push(response.url());
  });
  return refused;
};

const places = (page: ConsolePage) =>
  page.getByRole("navigation", { name: "Main" }).getByRole("link").allTextContents();

test("a member sees the own project, no other and nothing of the installation", async () => {
  const [shop, other] = [await herald.system.project("Shop"), await herald.system.project("Other team")];
  const { token } = await newMember("Shop viewer", [{ id: shop.id, role: "viewer" }]);
  const page = await herald.browser.open("/", { width: 360, height: 780, dark: true });
  const refused = refusalsOf(page);
  await signIn(page, token);
  await page.getByRole("heading", { name: "Overview" }).waitFor();
  await page.getByText("Nothing needs attention").waitFor();
  await page.getByRole("button", { name: "Menu" }).click();
  expect(await places(page)).not.toContain("Operations");
  await page.getByRole("button", { name: "Project: Shop" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByRole("link", { name: "Shop" }).waitFor();
  expect(await dialog.getByRole("link").allTextContents()).toEqual(["Shop"]);
  expect(await dialog.getByRole("button", { name: "New project" }).count()).toBe(0);
  for (const path of ["", "/providers", "/tokens", "/webhooks", "/identity", "/limits"]) {
    await page.goto(`${herald.system.gateway}/console/p/${shop.id}/settings${path}`);
    await page.getByRole("heading", { name: "Settings" }).waitFor();
    await page.locator(".mantine-Skeleton-root").first().waitFor({ state: "detached" });
    for (const verb of [/^(New|Add|Save|Delete|Replace|Stage)/, /test push/])
      expect(await page.getByRole("main").getByRole("button", { name: verb }).count(), `${path} ${verb}`).toBe(0);
  }
  expect(refused).toEqual([]);
  await page.goto(`${herald.system.gateway}/console/p/${other.id}/settings`);
  await page.getByText("This project does not exist").first().waitFor();
  expect(await page.content()).not.toContain("Other team");
  expectCalm(page);
});

test("a member who administers a project sees its audit log and changes its settings", async () => {
  const project = await herald.system.project("Administered");
  const { token } = await newMember("Shop admin", [{ id: project.id, role: "admin" }]);
  const page = await herald.browser.open("/");
  const refused = refusalsOf(page);
  await signIn(page, token);
  await page.getByRole("heading", { name: "Overview" }).waitFor();
  expect(await places(page)).toContain("Audit log");
  await page.getByRole("link", { name: "Settings" }).click();
  await page.getByLabel("Name").fill("Administered by its team");
  await page.getByRole("button", { name: "Save", exact: true }).click();
  await page.getByText("Saved.").waitFor();
  expect(await page.getByRole("button", { name: "Delete the project" }).count()).toBe(0);
  await page.getByRole("link", { name: "Audit log" }).click();
  await page.getByText("changeProject").first().waitFor(); // the page reads its rows every ten seconds
  expect(await page.getByRole("tab").allTextContents()).toEqual(["Audit log"]);
  expect(refused).toEqual([]);
  expectCalm(page);
});

test("an admin grants a project and signs the operator out, and someone without a project is told whom to ask", async () => {
  const project = await herald.system.project("Granted later");
  const { id, token } = await newMember("Newcomer", []);
  const theirs = await herald.browser.open("/");
  await signIn(theirs, token);
  await theirs.getByText("Ask an admin of Herald").waitFor();

  const page = await herald.browser.signedIn(`/p/${project.id}/operations/operators`);
  await page.getByRole("button", { name: "Projects of Newcomer: none" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByPlaceholder("Add a project").fill("Granted");
  await page.getByRole("option", { name: "Granted later" }).click();
  await dialog.getByLabel(`Role in ${project.id}`).click();
  await page.getByRole("option", { name: "operator" }).click();
  await dialog.getByRole("button", { name: "Save" }).click();
  await page.getByRole("button", { name: "Projects of Newcomer: 1" }).waitFor();
  expect(expectStatus(await herald.system.admin(`GET /operators/${id}`), 200).body.data.projects).toEqual([
    { id: project.id, role: "operator" },
  ]);
  await theirs.reload();
  await theirs.getByRole("button", { name: "Project: Granted later" }).waitFor();

  const row = page.getByRole("row", { name: /Newcomer/ });
  await row.getByRole("button", { name: "Sign out" }).click();
  await dialog.getByRole("button", { name: "Sign out" }).click();
  await dialog.waitFor({ state: "detached" });
  await theirs.getByText("Your session has ended").waitFor();
  const current = await request(herald.system.gateway, "GET /admin/v1/sessions/current", { token });
  expect(current.status).toBe(200);
  expectCalm(page);
});

/** Buttons that only read, among them the events of a webhook. */
const reading = /^(Find|Why\?|Next|Previous|More|Check the log|Export|API reference|Try again|[a-z]+\.[a-z]+$)/;

test("a viewer is told at the top of a page what the role cannot do there, and finds no button that does it", async () => {
  const project = await herald.system.project("Looked at");
  const { device } = await project.register({ user_id: "ann", topics: ["news"] });
  const { id } = await project.send({ title: "Seen", targets: ["all"] });
  const webhook = { url: "http://127.0.0.1:1/herald" };
  const hook = expectStatus(await project.call("POST /webhooks", { body: { webhook } }), 201).body.data.id;
  const { token } = await herald.system.operator({ name: "Viewer", role: "viewer" });
  const page = await herald.browser.open("/", { width: 360, height: 780 });
  const refused = refusalsOf(page);
  await signIn(page, token);
  await page.getByRole("heading", { name: "Overview" }).waitFor();
  const withActions = [
    ...["/compose", "/topics", "/templates", "/templates/new", `/devices/${device.id}`, "/users/ann"],
    ...[`/notifications/${id}`, "/settings", "/settings/providers", "/settings/kinds", "/settings/tokens"],
    ...["/settings/webhooks", `/settings/webhooks/${hook}`, "/settings/identity"],
    ...["/operations/letters", "/operations/operators"],
  ];
  for (const path of ["", "/notifications", "/trace", "/devices", "/users", "/settings/limits", ...withActions]) {
    await page.goto(`${herald.system.gateway}/console/p/${project.id}${path}`);
    await page.getByRole("heading", { level: 1 }).waitFor();
    await page.locator(".mantine-Skeleton-root").first().waitFor({ state: "detached" });
    const notes = page.getByText(/^Your role here is viewer. Only the role (operator|admin) can/);
    if (withActions.includes(path)) await notes.waitFor();
    const buttons = page
      .getByRole("main")
      .locator('button:enabled:not(.copyable, [role="tab"]), a.mantine-Button-root');
    const names = await buttons.allTextContents();
    expect([path, names.filter((name) => name !== "" && !reading.test(name))]).toEqual([path, []]);
  }
  await page.goto(`${herald.system.gateway}/console/p/${project.id}/compose`);
  expect(await page.getByLabel("Title").isDisabled()).toBe(true);
  expect(refused).toEqual([]);
  expectCalm(page);
});
