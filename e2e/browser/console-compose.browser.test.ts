import { eventually, expectStatus, request } from "@herald/testing";
import { expect } from "vitest";
import type { Content, Project } from "../harness/project.ts";
import { payloadOf } from "../harness/simulators.ts";
import { logOnFailure } from "../harness/system.ts";
import { type ConsolePage, expectCalm } from "./console-page.ts";
import { type SharedConsole, test } from "./shared-console.ts";

/** Compose and the page of a notification that waits for its file, in a real Chromium against a running system. */

let herald: SharedConsole;
test.beforeAll(({ herald: shared }) => {
  herald = shared;
});
logOnFailure(() => herald?.system);

const open = (project: Project, path = "/compose") => herald.browser.signedIn(`/p/${project.id}${path}`);

const addTarget = async (page: ConsolePage, target: string) => {
  await page.getByLabel("Targets").first().fill(target);
  await page.keyboard.press("Enter");
};

const choose = async (page: ConsolePage, label: string, option: string | RegExp) => {
  await page.getByLabel(label, { exact: true }).first().click();
  await page.getByRole("option", { name: option }).click();
};

const titlesAt = async (token: string) =>
  (await herald.system.simulators.pushes({ token })).map((push) => Object(payloadOf(push).aps?.alert).title);

const stored = async (project: Project, page: ConsolePage) => {
  await page.waitForURL(/\/notifications\/ntf_/);
  const id = new URL(page.url()).pathname.split("/").at(-1) ?? "";
  return expectStatus(await project.call(`GET /notifications/${id}`), 200).body.data;
};

const chooseFile = (page: ConsolePage, name: string, content: string) =>
  page.locator('input[type="file"]').setInputFiles({ name, mimeType: "", buffer: Buffer.from(content) });

test("what is sent at local time is counted, tried out and scheduled", async () => {
  const project = await herald.system.project("Morning");
  const { device } = await project.register();
  const page = await open(project);
  await page.getByLabel("Title").fill("Good morning");
  await page.getByText("Local time", { exact: true }).click();
  await addTarget(page, "all");
  await page.getByText(/^One wave, at/).waitFor();
  await page.getByRole("button", { name: "Send to one device first" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Device").fill(`device:${device.id}`);
  await dialog.getByRole("button", { name: "Send to this device" }).click();
  await dialog.getByRole("status").getByText("accepted", { exact: true }).waitFor();
  expect(await titlesAt(device.token)).toEqual(["Good morning"]);
  await dialog.getByRole("button", { name: "Close" }).last().click();

  await page.getByRole("button", { name: "Send to 1 device…" }).click();
  await dialog.getByText(/on each device's clock/).waitFor();
  await dialog.getByRole("button", { name: "Send to 1 device" }).click();
  expect(await stored(project, page)).toMatchObject({ time_zone: "device", past: "tomorrow", targets: ["all"] });
  await page.getByText(/on each device's clock/).waitFor();
  expectCalm(page);
});

test("a kind is chosen, and who switched it off does not get it; used as a draft again it keeps it", async () => {
  const project = await herald.system.project("Kinds");
  const { device } = await project.register({ user_id: "ann" });
  const kind = { kind: { title: "Offers" } };
  expectStatus(await herald.system.admin(`PUT /projects/${project.id}/kinds/offers`, { body: kind }), 201);
  const preferences = { preferences: { kinds: { offers: false } } };
  expectStatus(await project.call("PUT /users/ann/preferences", { body: preferences }), 200);
  const page = await open(project);
  await page.getByText("Everyone who matches gets it, also people who have switched kinds off.").waitFor();
  await page.getByLabel("Title").fill("Half price");
  await addTarget(page, "user:ann");
  await choose(page, "Kind", "Offers");
  await page.getByText("1 skipped: muted").waitFor();
  await page.getByRole("button", { name: "Send to 1 device…" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Send to 1 device" }).click();
  const { id } = await stored(project, page);
  expect(await project.final(id)).toMatchObject({ kind: "offers", counts: { accepted: 0 }, skips: { muted: 1 } });

  await page.getByRole("button", { name: "Use as draft" }).click();
  await page.getByText("People who have switched it off do not get it.").waitFor();
  await choose(page, "Kind", /^No kind/);
  await page.getByText("1 skipped: muted").waitFor({ state: "detached" });
  await page.getByRole("button", { name: "Send to 1 device…" }).click();
  await page.getByRole("dialog").getByText("none: cannot be switched off").waitFor();
  await page.getByRole("dialog").getByRole("button", { name: "Send to 1 device" }).click();
  await eventually(async () => expect(await titlesAt(device.token)).toEqual(["Half price"]));
  expectCalm(page);
});

test("a template shows its texts and what it needs before a target is there, and each problem once", async () => {
  const project = await herald.system.project("Texts first");
  const template = {
    ...{ title: "Invoice {{ number }}", body: "Over {{ amount }}, dear {{ name }}" },
    variables: { number: { type: "string" }, amount: { type: "number" }, name: { type: "string", fallback: "friend" } },
  };
  const as = { token: herald.system.adminToken, headers: { "Herald-Project": project.id } };
  const api = `${herald.system.gateway}/api/v1/templates/invoice`;
  expectStatus(await request(api, "PUT", { ...as, body: { template } }), 201);
  expectStatus(await request(`${api}/publish`, "POST", as), 200);
  const { device } = await project.register();
  const page = await open(project);
  await choose(page, "Template", "invoice");
  await page.locator(".lock-title", { hasText: "Invoice number" }).waitFor();
  expect(await page.getByLabel("Title").getAttribute("placeholder")).toBe("Invoice {{ number }}");
  expect(await page.getByLabel("Text", { exact: true }).getAttribute("placeholder")).toBe(template.body);
  await page.getByText("A number; required.").waitFor();
  await page.getByText("A text; empty: friend.").waitFor();
  expect(await page.getByLabel("amount", { exact: true }).getAttribute("placeholder")).toBe("12.5");
  await page.getByLabel("number", { exact: true }).fill("2041");
  await page.locator(".lock-title", { hasText: "Invoice 2041" }).waitFor();
  await addTarget(page, `device:${device.id}`);
  await page.getByText("The template needs a value").waitFor();
  await page.getByLabel("amount", { exact: true }).fill("8");
  await page.locator(".lock-body", { hasText: "Over 8, dear friend" }).waitFor();
  await page.getByLabel("Title").fill("For {{ nmae }}");
  const problem = page.getByText(/there is no variable nmae/);
  await problem.first().waitFor();
  expect(await problem.count()).toBe(1);
  await page.getByText("See Title.").waitFor();
  await page.getByLabel("Title").fill("For {{ name }}");
  await page.getByRole("button", { name: "Send to 1 device…" }).waitFor();
  expectCalm(page);
});

test("a file is tried out, checked without sending, and sent", async () => {
  const project = await herald.system.project("Invoices");
  const { device } = await project.register({ user_id: "ann" });
  const page = await open(project);
  await page.getByLabel("Title").fill("Invoice {{ number }}");
  await page.getByText("A file", { exact: true }).click();
  await chooseFile(page, "invoices.csv", "user,number\nuser:ann,2041\n");
  await page.getByText("The first row must name the columns").waitFor();
  await chooseFile(
    page,
    "invoices.csv",
    "target,number\nuser:ann,2041\nuser:bea\nuser:ann,1\ntopic:news,3\nuser:cid,4\n",
  );
  await page.getByText("It names users. The first is user:ann, number 2041.").waitFor();
  await page.locator(".lock-title", { hasText: "Invoice 2041" }).waitFor();
  await page.getByRole("button", { name: "Send to one device first" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Device").fill("user:ann");
  await dialog.getByRole("button", { name: "Send to this device" }).click();
  await dialog.getByRole("status").getByText("accepted", { exact: true }).waitFor();
  await dialog.getByRole("button", { name: "Close" }).last().click();

  const check = async () => {
    await page.getByRole("button", { name: "Check the file…" }).click();
    await dialog.getByRole("button", { name: "Check the file" }).click();
    await dialog.getByRole("row", { name: /^3 the line has 1 cells/ }).waitFor();
    await dialog.getByRole("row", { name: /^5 target must be/ }).waitFor();
  };
  await check();
  await dialog.getByRole("button", { name: "Cancel" }).click();
  await eventually(async () => {
    const { data } = expectStatus(await project.call("GET /notifications?status=cancelled"), 200).body;
    expect(data).toMatchObject([{ title: "Invoice {{ number }}", counts: { devices: 0 } }]);
  });
  expect(await titlesAt(device.token)).toEqual(["Invoice 2041"]);
  await check();
  await dialog.getByRole("button", { name: "Send to 2 recipients" }).click();
  const { id } = await stored(project, page);
  await page.getByText("All 6 lines were read.").waitFor();
  await page.getByRole("row", { name: /^3 the line/ }).waitFor();
  expect(await project.final(id)).toMatchObject({ counts: { accepted: 1 } });
  expect(await titlesAt(device.token)).toEqual(["Invoice 2041", "Invoice 2041"]);
  expectCalm(page);
});

test("a notification that waits for its file gets it on its page, also after a stop and a lost connection", async () => {
  const project = await herald.system.project("Waits");
  const { device } = await project.register({ user_id: "ann" });
  const { id } = await project.send({
    ...{ title: "Invoice {{ n }}", variables: { n: 0 }, recipients: { upload: "user" } },
  } as unknown as Content);
  const page = await open(project, `/notifications/${id}`);
  await page.getByText("Waits for its file.").waitFor();
  const lines = Array.from({ length: 2_500 }, (_, at) => `user:${at === 2_499 ? "ann" : at},${at}\n`);
  await chooseFile(page, "invoices.csv", `target,n\n${lines.join("")}`);
  await page.getByRole("button", { name: "Check the file" }).click();
  const route = `**/api/v1/notifications/${id}/recipients?*`;
  await page.getByRole("button", { name: "Send to 2,500 recipients" }).waitFor();

  await page.route(route, () => undefined); // it never gets an answer
  await page.getByRole("button", { name: "Send to 2,500 recipients" }).click();
  await page.getByText("Uploading invoices.csv: Herald has 0 of 2,501 lines.").waitFor();
  await page.getByRole("button", { name: "Stop the upload" }).click();
  await page.getByText("You stopped the upload").waitFor();
  await page.unroute(route);
  await page.route(route, (one) => one.abort("connectionreset"));
  await page.getByRole("button", { name: "Send to 2,500 recipients" }).click();
  await page.getByText("The connection broke").waitFor();
  await page.getByText("Herald has no line of the file yet. Send it again.").first().waitFor();
  await page.unroute(route);
  await page.getByRole("button", { name: "Send to 2,500 recipients" }).click();
  await page.getByText("All 2,501 lines were read.").waitFor();
  expect(await project.final(id)).toMatchObject({ counts: { accepted: 1 } });
  expect(await titlesAt(device.token)).toEqual(["Invoice 2499"]);
  expectCalm(page);
});
