import { expectStatus } from "@herald/testing";
import { expect } from "vitest";
import { apnsToken, type Project } from "../harness/project.ts";
import { registerAll } from "../harness/register-all.ts";
import { logOnFailure } from "../harness/system.ts";
import { type ConsolePage, expectCalm, goTo } from "./console-page.ts";
import { problemsAtBothWidths } from "./page-checks.ts";
import { type SharedConsole, test } from "./shared-console.ts";

/** The approval of large sends in the console, in a real Chromium against a running system. */

let herald: SharedConsole;
test.beforeAll(({ herald: shared }) => {
  herald = shared;
});
logOnFailure(() => herald?.system);

const limit = 1_000;

const register = (project: Project, count: number) =>
  registerAll(
    project,
    Array.from({ length: count }, () => ({ token: apnsToken(), platform: "ios", topics: ["news"] })),
  );

/** A project in which a send to all devices waits for approval. */
const guarded = async (name: string): Promise<Project> => {
  const project = await herald.system.project(name);
  await register(project, limit + 10);
  const body = { project: { approval: { devices: limit } } };
  expectStatus(await herald.system.admin(`PATCH /projects/${project.id}`, { body }), 200);
  return project;
};

type Grant = { readonly id: string; readonly role: string; readonly approve?: true };

const newOperator = async (name: string, role: string, projects: readonly Grant[] = []): Promise<string> =>
  (await herald.system.operator({ name, role, projects })).token;

const signedInAs = async (token: string, path: string): Promise<ConsolePage> => {
  const page = await herald.browser.open(path);
  await page.getByLabel("Operator token").fill(token);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("heading", { level: 1 }).waitFor();
  return page;
};

const banner = (page: ConsolePage) =>
  page.getByRole("alert").filter({ hasText: "This notification waits for approval" });

test("a large send waits, its sender may not approve it, another operator sees how many it reaches and does", {
  timeout: 240_000,
}, async () => {
  const project = await guarded("Big shop");
  const address = `${herald.system.gateway}/console/p/${project.id}`;
  const sender = await signedInAs(await newOperator("Ann", "admin"), `/p/${project.id}/compose`);
  await sender.getByLabel("Title").fill("Half price");
  await sender.getByLabel("Targets").first().fill("topic:news");
  await sender.keyboard.press("Enter");
  await sender.getByRole("button", { name: "Send to 1,010 devices…" }).click();
  await sender.getByRole("dialog").getByRole("button", { name: "Send to 1,010 devices" }).click();
  await sender.waitForURL(/\/notifications\/ntf_/);
  const id = new URL(sender.url()).pathname.split("/").at(-1) ?? "";
  await banner(sender).getByText("about 1,010 devices").waitFor();
  expect(await project.notification(id)).toMatchObject({ status: "proposed", counts: { devices: 0 } });
  expect(await sender.getByRole("button", { name: "Pause sending" }).count()).toBe(0);
  await banner(sender).getByRole("button", { name: "Approve" }).click();
  await sender.getByRole("dialog").getByRole("button", { name: "Approve" }).click();
  await sender
    .getByRole("dialog")
    .getByText("you sent it, or created the token that did: another person has to approve it")
    .waitFor();
  expect(await problemsAtBothWidths(sender)).toEqual([]);
  expectCalm(sender);

  const grant = { id: project.id, role: "operator", approve: true } as const;
  const page = await signedInAs(await newOperator("Bob", "member", [grant]), `/p/${project.id}`);
  await page.getByRole("link", { name: "“Half price” waits for approval" }).click();
  await banner(page).getByText("Ann").waitFor();
  await banner(page).getByText("iOS 1,010").waitFor();
  expect(await problemsAtBothWidths(page)).toEqual([]);
  await goTo(page, `${address}/notifications?status=proposed`);
  await page
    .getByRole("row", { name: /Half price.*proposed/ })
    .getByRole("link")
    .click();

  // More than a fifth more devices than were proposed: the new number is seen before it is approved.
  await register(project, 300);
  const dialog = page.getByRole("dialog", { name: "Approve this notification?" });
  await banner(page).getByRole("button", { name: "Approve" }).click();
  await dialog.getByText("“Half price” of Big shop reaches about 1,010 devices. It is sent at once.").waitFor();
  await dialog.getByLabel("Why").fill("the sale is on");
  await dialog.getByRole("button", { name: "Approve" }).click();
  await dialog.getByText("it reaches about 1310 devices now").waitFor();
  await dialog.getByText("about 1,310 devices").waitFor();
  expect(await problemsAtBothWidths(page)).toEqual([]);
  expect((await project.notification(id)).status).toBe("proposed");
  await dialog.getByRole("button", { name: "Approve" }).click();
  await dialog.waitFor({ state: "detached" });
  const decided = page.getByRole("note").filter({ hasText: "Approved." });
  await decided.getByText("Bob").waitFor();
  await decided.getByText("the sale is on").waitFor();
  expect(await project.final(id, 60_000)).toMatchObject({ status: "completed", counts: { accepted: limit + 310 } });
  expect(await problemsAtBothWidths(page)).toEqual([]);
  expectCalm(page);
});

test("a proposal is rejected with a reason that all see, and an operator who may not approve is told who may", {
  timeout: 240_000,
}, async () => {
  const project = await guarded("Rejecting shop");
  const { id } = await project.send({ title: "Wrong link", targets: ["all"] });
  const path = `/p/${project.id}/notifications/${id}`;
  const operator = await signedInAs(await newOperator("Cleo", "operator"), path);
  await banner(operator).getByText("An admin of Herald, or an operator who may approve here, decides.").waitFor();
  expect(await operator.getByRole("button", { name: /^(Approve|Reject)$/ }).count()).toBe(0);

  // The holder of the admin token may do everything but this.
  const root = await herald.browser.signedIn(path);
  await banner(root).getByRole("button", { name: "Approve" }).click();
  await root.getByRole("dialog").getByRole("button", { name: "Approve" }).click();
  await root.getByRole("dialog").getByText("HERALD_ADMIN_TOKEN is no person; approve it as an operator").waitFor();

  const page = await signedInAs(await newOperator("Dora", "admin"), path);
  await banner(page).getByRole("button", { name: "Reject" }).click();
  const dialog = page.getByRole("dialog", { name: "Reject this notification?" });
  await dialog.getByLabel("Why").fill("it leads to yesterday's sale");
  await dialog.getByRole("button", { name: "Reject" }).click();
  for (const one of [page, operator]) {
    const decided = one.getByRole("note").filter({ hasText: "Rejected." });
    await decided.getByText("it leads to yesterday's sale").waitFor();
    await decided.getByText("Dora").waitFor();
    await banner(one).waitFor({ state: "detached" });
  }
  expect(await project.notification(id)).toMatchObject({ status: "cancelled", counts: { devices: 0 } });
  expect(await problemsAtBothWidths(page)).toEqual([]);
  expectCalm(page);
});

test("an admin sets the limit and lets an operator approve; an admin of the project alone may only lower it", {
  timeout: 240_000,
}, async () => {
  const project = await herald.system.project("Limited shop");
  await newOperator("Erin", "member", [{ id: project.id, role: "operator" }]);
  const path = `/p/${project.id}/settings`;
  const page = await herald.browser.signedIn(path);
  await page.getByText("No sends wait for approval.").waitFor();
  const change = async (one: ConsolePage, devices: string) => {
    await one.getByRole("button", { name: "Change: Approval" }).click();
    await one.getByRole("dialog").getByLabel("Approval above, in devices").fill(devices);
    await one.getByRole("dialog").getByRole("button", { name: "Save" }).click();
  };
  const closed = (one: ConsolePage) => one.getByRole("dialog").waitFor({ state: "detached" });
  await change(page, "5");
  await page.locator(".mantine-InputWrapper-error").waitFor();
  expect(await problemsAtBothWidths(page)).toEqual([]);
  await page.getByRole("dialog").getByLabel("Approval above, in devices").fill("20000");
  await page.getByRole("dialog").getByRole("button", { name: "Save" }).click();
  await closed(page);
  await page.getByText("Sends to more than 20,000 devices wait").waitFor();
  expect(await problemsAtBothWidths(page)).toEqual([]);

  const theirs = await signedInAs(await newOperator("Finn", "member", [{ id: project.id, role: "admin" }]), path);
  await change(theirs, "10000");
  await closed(theirs);
  await theirs.getByText("Sends to more than 10,000 devices wait").waitFor();
  await change(theirs, "");
  await theirs.getByText("only an admin of the installation may raise the number or remove it").waitFor();
  expectCalm(theirs);

  await goTo(page, `${herald.system.gateway}/console/p/${project.id}/operations/operators`);
  await page.getByRole("button", { name: "Projects of Erin: 1" }).click();
  await page.getByRole("dialog").getByLabel(`May approve in ${project.id}`).check();
  expect(await problemsAtBothWidths(page)).toEqual([]);
  await page.getByRole("dialog").getByRole("button", { name: "Save" }).click();
  await closed(page);
  const { body } = expectStatus(await herald.system.admin("GET /operators?per_page=100"), 200);
  expect(body.data.find(({ name }: { name: string }) => name === "Erin").projects).toEqual([
    { id: project.id, role: "operator", approve: true },
  ]);
  expectCalm(page);
});
