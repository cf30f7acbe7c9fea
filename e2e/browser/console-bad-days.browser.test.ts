import { freePort } from "@herald/provision";
import { eventually, expectStatus } from "@herald/testing";
import { expect, test } from "vitest";
import { expectCalm, isMarked, mark, useConsole } from "./console-page.ts";

/** Messages and kept input of the console when something fails. */

/** While true, a started gateway listens on another port, so the address of the console refuses connections. */
let isUnavailable = false;
const elsewhere = String(await freePort());
const herald = useConsole({
  startedFrom: (service, usual) =>
    service === "gateway" && isUnavailable ? { ...usual, env: { ...usual.env, HERALD_PORT: elsewhere } } : usual,
});
const unreachable = "Herald is unreachable";

test("a draft outlives a reload", async () => {
  const project = await herald.system.project("Drafts");
  const page = await herald.browser.signedIn(`/p/${project.id}/compose`);
  await page.getByLabel("Title").fill("Half written");
  await page.reload();
  await expect.poll(() => page.getByLabel("Title").inputValue()).toBe("Half written");
});

test("a used-up quota is shown with the time to retry, and the draft stays", async () => {
  const project = await herald.system.project("Quota");
  const body = { notification: { title: "Counted", targets: ["all"], dry_run: true } };
  const page = await herald.browser.signedIn(`/p/${project.id}/compose`);
  await page.getByLabel("Title").fill("Nearly done");
  // The quota's minute begins with the first of them.
  const answers = await Promise.all(Array.from({ length: 61 }, () => project.call("POST /notifications", { body })));
  expect(answers.filter(({ status }) => status === 429)).toHaveLength(1);
  await page.getByLabel("Targets").first().fill("all");
  await page.keyboard.press("Enter");
  await page
    .getByRole("alert")
    .getByText(/at most 60 in 60 s are accepted here; retry in \d+ s/)
    .waitFor();
  await page
    .getByRole("alert")
    .getByText(/^Try again in \d+ s\.$/)
    .waitFor();
  expect(await page.getByLabel("Title").inputValue()).toBe("Nearly done");
  await page.reload();
  await expect.poll(() => page.getByLabel("Title").inputValue()).toBe("Nearly done");
  expectCalm(page);
});

test("when the gateway dies, the page shows it, keeps the draft, and recovers", async () => {
  const project = await herald.system.project("Gone");
  const list = await herald.browser.signedIn(`/p/${project.id}/notifications`);
  await list.getByText("No notifications yet").waitFor();
  await mark(list);
  const compose = await herald.browser.signedIn(`/p/${project.id}/compose`);
  await compose.getByLabel("Title").fill("Written before");
  await mark(compose);

  isUnavailable = true;
  await herald.system.services.gateway.kill();
  for (const page of [list, compose]) await page.getByRole("alert").getByText(unreachable).waitFor();
  await compose.getByLabel("Text").fill("Written meanwhile");
  await compose.getByLabel("Targets").first().fill("all");
  await compose.keyboard.press("Enter");

  isUnavailable = false;
  await herald.system.services.gateway.kill();
  await herald.system.services.gateway.ready();
  for (const page of [list, compose]) {
    await page.getByText(unreachable).first().waitFor({ state: "detached" });
    expect(await isMarked(page)).toBe(true);
  }
  expect(await compose.getByLabel("Title").inputValue()).toBe("Written before");
  expect(await compose.getByLabel("Text").inputValue()).toBe("Written meanwhile");
  await compose.getByText("No active device matches").waitFor();
  await project.send({ title: "After the break", targets: ["all"] });
  await list.getByRole("link", { name: /After the break/ }).waitFor();
});

test("the page shows that the gateway does not answer, and recovers when it does", async () => {
  const project = await herald.system.project("Frozen");
  const page = await herald.browser.signedIn(`/p/${project.id}/notifications`);
  await page.getByText("No notifications yet").waitFor();
  await mark(page);
  const pid = herald.system.services.gateway.pid();
  process.kill(pid, "SIGSTOP");
  try {
    await page.getByRole("alert").getByText(unreachable).waitFor({ timeout: 60_000 });
  } finally {
    process.kill(pid, "SIGCONT");
  }
  await page.getByText(unreachable).first().waitFor({ state: "detached" });
  await project.send({ title: "After the frost", targets: ["all"] });
  await page.getByRole("link", { name: /After the frost/ }).waitFor();
  expect(await isMarked(page)).toBe(true);
});

test("when a session ends, the page asks to sign in and keeps the draft", async () => {
  const project = await herald.system.project("Ends");
  const leaving = await herald.system.operator({ name: "Leaving", role: "admin" });
  const page = await herald.browser.open(`/p/${project.id}/compose`);
  await page.getByLabel("Operator token").fill(leaving.token);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByLabel("Title").fill("Still here");
  expectStatus(await herald.system.admin(`DELETE /operators/${leaving.id}`), 204);
  const dialog = page.getByRole("dialog");
  await dialog.getByText("Your session has ended").waitFor();
  await dialog.getByLabel("Operator token").fill(herald.system.adminToken);
  await dialog.getByRole("button", { name: "Sign in" }).click();
  await dialog.waitFor({ state: "detached" });
  expect(await page.getByLabel("Title").inputValue()).toBe("Still here");
});

test("who loses a role while a page is open is told so, and after a reload fields that cannot be changed", async () => {
  const { system } = herald;
  const project = await system.project("Viewer");
  const { id, token } = await system.operator({ name: "Looks", role: "admin" });
  const page = await herald.browser.open(`/p/${project.id}/settings`);
  await page.getByLabel("Operator token").fill(token);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByLabel("Name").fill("Taken over");
  await system.admin(`PATCH /operators/${id}`, { body: { operator: { role: "viewer" } } });
  const change = { body: { project: { name: "Taken over" } }, token };
  await eventually(async () => expectStatus(await system.admin(`PATCH /projects/${project.id}`, change), 403));
  await page.getByRole("button", { name: "Save" }).click();
  const refusal = page.getByRole("alert");
  await refusal.getByText("You may not do this").waitFor();
  await refusal.getByText("Details").click();
  await refusal.getByText("`viewer`").waitFor();
  await page.reload();
  await expect.poll(() => page.getByLabel("Name").isDisabled()).toBe(true);
});
