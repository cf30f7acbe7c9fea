import { expectStatus } from "@herald/testing";
import { expect } from "vitest";
import { logOnFailure } from "../harness/system.ts";
import { type ConsolePage, expectCalm, goTo } from "./console-page.ts";
import { problemsAtBothWidths } from "./page-checks.ts";
import { type SharedConsole, test } from "./shared-console.ts";

/** Pauses in the console, in a real Chromium against a running system. */

let herald: SharedConsole;
test.beforeAll(({ herald: shared }) => {
  herald = shared;
});
logOnFailure(() => herald?.system);

const pausedOf = async (project: string) =>
  expectStatus(await herald.system.admin(`GET /projects/${project}`), 200).body.data.paused;

const tomorrow = () => new Date(Date.now() + 86_400_000).toISOString();

const signedInAs = async (role: string, path: string): Promise<ConsolePage> => {
  const { token } = await herald.system.operator({ name: `A ${role}`, role });
  const page = await herald.browser.open(path);
  await page.getByLabel("Operator token").fill(token);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("heading", { level: 1 }).waitFor();
  return page;
};

test("all sends of a project are paused and resumed by keyboard, and every page says who paused them and why", {
  timeout: 240_000,
}, async () => {
  const project = await herald.system.project("Stopped shop");
  await project.register({ topics: ["news"] });
  const page = await herald.browser.signedIn(`/p/${project.id}`);
  const pause = page.getByRole("button", { name: "Pause all sends" });
  await pause.focus();
  await page.keyboard.press("Enter");
  const dialog = page.getByRole("dialog", { name: "Pause all sends of Stopped shop?" });
  await dialog.getByLabel("Why").and(page.locator(":focus")).waitFor();
  expect(await problemsAtBothWidths(page)).toEqual([]);
  await page.keyboard.type("the link leads to yesterday's sale");
  // An end that has passed is refused beside its field.
  await dialog.getByLabel("Until").fill("2020-01-01T10:00");
  await page.keyboard.press("Enter");
  await dialog.locator(".mantine-InputWrapper-error").waitFor();
  await dialog.getByLabel("Until").fill("");
  await page.keyboard.press("Enter");
  await dialog.waitFor({ state: "detached" });

  const banner = page.getByRole("alert").filter({ hasText: "All sends of this project are paused." });
  await banner.getByText("by root").waitFor();
  expect(await pausedOf(project.id)).toMatchObject({ reason: "the link leads to yesterday's sale", of: "project" });
  const { id } = await project.send({ title: "Waits", targets: ["topic:news"] });
  for (const path of ["/compose", "/settings", `/notifications/${id}`, ""]) {
    await goTo(page, `${herald.system.gateway}/console/p/${project.id}${path}`);
    await banner.getByText("the link leads to yesterday's sale").waitFor();
    expect(await pause.count()).toBe(0);
  }
  expect(await problemsAtBothWidths(page)).toEqual([]);
  expect((await project.notification(id)).counts.accepted).toBe(0);

  await banner.getByRole("button", { name: "Resume" }).focus();
  await page.keyboard.press("Enter");
  await page.getByRole("dialog").getByRole("button", { name: "Resume" }).click();
  await banner.waitFor({ state: "detached" });
  await pause.waitFor();
  expect((await project.final(id)).counts.accepted).toBe(1);
  expect(await pausedOf(project.id)).toBeUndefined();
  expectCalm(page);
});

test("a notification is paused and resumed on its page, and lists find it by its status", async () => {
  const project = await herald.system.project("Paused one");
  const { id } = await project.send({ title: "Wrong link", targets: ["all"], send_at: tomorrow() });
  const address = `${herald.system.gateway}/console/p/${project.id}/notifications`;
  const page = await herald.browser.signedIn(`/p/${project.id}/notifications/${id}`);
  await page.getByRole("button", { name: "Pause sending" }).click();
  const dialog = page.getByRole("dialog", { name: "Pause this notification?" });
  await dialog.getByLabel("Why").fill("the wrong link");
  await dialog.getByRole("button", { name: "Pause sending" }).click();
  const paused = page.getByRole("alert").filter({ hasText: "This notification is paused." });
  await paused.getByText("the wrong link").waitFor();
  expect(await project.notification(id)).toMatchObject({ status: "paused", paused: { reason: "the wrong link" } });
  expect(await problemsAtBothWidths(page)).toEqual([]);

  await goTo(page, `${address}?status=paused`);
  await page
    .getByRole("row", { name: /Wrong link.*paused/ })
    .getByRole("link")
    .click();
  await page.getByRole("button", { name: "Resume sending" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Resume sending" }).click();
  await paused.waitFor({ state: "detached" });
  await page.getByRole("button", { name: "Pause sending" }).waitFor();
  expect((await project.notification(id)).status).toBe("scheduled");
  expectCalm(page);
});

test("a viewer sees that sends are paused, an operator resumes those of a project, and only an admin those of all", async () => {
  const project = await herald.system.project("Roles");
  const path = `/p/${project.id}`;
  const banner = (page: ConsolePage) => page.getByRole("alert").filter({ hasText: /paused\./ });
  const resumes = (page: ConsolePage) => banner(page).getByRole("button", { name: "Resume" }).count();
  expectStatus(await herald.system.admin(`POST /projects/${project.id}/pause`, { body: { until: tomorrow() } }), 200);
  const viewer = await signedInAs("viewer", path);
  await banner(viewer).getByText("All sends of this project are paused.").waitFor();
  await banner(viewer).getByText(", until ").waitFor();
  const operator = await signedInAs("operator", path);
  await banner(operator).getByText("All sends of this project are paused.").waitFor();
  expect([await resumes(viewer), await resumes(operator)]).toEqual([0, 1]);

  expectStatus(await herald.system.admin(`POST /projects/${project.id}/resume`), 200);
  // The event of the project arrives on pages that are open.
  await banner(viewer).waitFor({ state: "detached" });
  await operator.getByRole("button", { name: "Pause all sends" }).waitFor();
  expect(await viewer.getByRole("button", { name: "Pause all sends" }).count()).toBe(0);

  expectStatus(await herald.system.admin("POST /pause", { body: { reason: "an incident" } }), 200);
  try {
    await operator.reload();
    await banner(operator).getByText("The sends of all projects are paused.").waitFor();
    const admin = await herald.browser.signedIn(path);
    await banner(admin).getByText("an incident").waitFor();
    expect([await resumes(operator), await resumes(admin)]).toEqual([0, 1]);
    await banner(admin).getByRole("button", { name: "Resume" }).click();
    const dialog = admin.getByRole("dialog", { name: "Resume the sends of all projects?" });
    await dialog.getByRole("button", { name: "Resume" }).click();
    await banner(admin).waitFor({ state: "detached" });
  } finally {
    expectStatus(await herald.system.admin("POST /resume"), 200);
  }
  expect(expectStatus(await herald.system.admin("GET /installation"), 200).body.data).toEqual({});
});
