import { readFile } from "node:fs/promises";
import { eventually, expectStatus, request } from "@herald/testing";
import { expect } from "vitest";
import type { Content } from "../harness/project.ts";
import { payloadOf } from "../harness/simulators.ts";
import { logOnFailure } from "../harness/system.ts";
import { expectCalm } from "./console-page.ts";
import { type SharedConsole, test } from "./shared-console.ts";

let herald: SharedConsole;
test.beforeAll(({ herald: shared }) => {
  herald = shared;
});
logOnFailure(() => herald?.system);

test("the guide's way by console: write a template, see it, publish it, and send from it", {
  timeout: 120_000,
}, async () => {
  // Every name that the guide prints in bold is pressed or read below.
  const guide = await readFile(new URL("../../docs/how-to/write-templates.md", import.meta.url), "utf8");
  const [, byConsole = ""] = /^## By console\n(.*?)^## /ms.exec(guide) ?? [];
  const bold = new Set([...byConsole.matchAll(/\*\*(.+?)\*\*/g)].map(([, name]) => name));
  expect([...bold].toSorted()).toEqual([
    "Add a variable",
    "Compose",
    "New template",
    "Publish",
    "Save draft",
    "Template",
    "Templates",
    "Variables",
    "Write it",
  ]);

  const project = await herald.system.project("Templates");
  const { device } = await project.register();
  const page = await herald.browser.signedIn(`/p/${project.id}`);
  await page.getByRole("link", { name: "Templates" }).click();
  await page.getByRole("button", { name: "New template" }).first().click();
  await page.getByLabel("Name").fill("order-shipped");
  await page.getByRole("button", { name: "Write it" }).click();

  await page.getByLabel("Title").fill("Order {{ order }} has shipped");
  await page.getByText("line 1, column 10: `order` is not among the variables").first().waitFor();
  await page.getByRole("heading", { name: "Variables" }).waitFor();
  await page.getByRole("button", { name: "Add a variable" }).click();
  await page.getByLabel("Variable", { exact: true }).fill("order");
  await page.getByLabel("Sample").fill("42");
  await page.locator(".lock-title", { hasText: "Order 42 has shipped" }).waitFor();
  await page.getByLabel("Text").fill("{{ count }} {{ count | plural: one: 'parcel', other: 'parcels' }}");
  await page.getByRole("button", { name: "Add a variable" }).click();
  await page.getByLabel("Variable", { exact: true }).nth(1).fill("count");
  await page.getByLabel("Type").nth(1).selectOption("number");
  await page.getByLabel("Fallback").nth(1).fill("1");
  await page.locator(".lock-body", { hasText: "1 parcel" }).waitFor();

  await page.getByRole("button", { name: "Save draft" }).click();
  await page.getByText("A draft: sends cannot use it before it is published.").waitFor();
  const as = { token: herald.system.adminToken, headers: { "Herald-Project": project.id } };
  const path = `${herald.system.gateway}/api/v1/templates/order-shipped`;
  expect((await request(path, "GET", as)).body.data).toMatchObject({ changed: true, version: "draft" });
  await page.getByRole("button", { name: "Publish" }).click();
  await page.getByText("Sends use version 1.").waitFor();

  await page.getByRole("link", { name: "Compose" }).click();
  await page.getByLabel("Template", { exact: true }).first().click();
  await page.getByRole("option", { name: "order-shipped" }).click();
  await page.getByLabel("order", { exact: true }).fill("7");
  await page.getByLabel("Targets").first().fill(`device:${device.id}`);
  await page.keyboard.press("Enter");
  await page.locator(".lock-title", { hasText: "Order 7 has shipped" }).waitFor();
  await page.getByRole("button", { name: "Send to 1 device…" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Send to 1 device" }).click();
  await eventually(async () => {
    const [push] = await herald.system.simulators.pushes({ token: device.token });
    expect(push && payloadOf(push)).toMatchObject({
      aps: { alert: { title: "Order 7 has shipped", body: "1 parcel" } },
    });
  });
  expectCalm(page);
  expectStatus(await request(path, "DELETE", as), 204);
});

test("an upload of recipients: its progress, its counts and its errors by line", { timeout: 120_000 }, async () => {
  const project = await herald.system.project("Recipients");
  await project.register({ user_id: "ann" });
  const { id } = await project.send({
    ...{ title: "Invoice {{ n }}", variables: { n: 0 }, recipients: { upload: "user" } },
  } as unknown as Content);
  const page = await herald.browser.signedIn(`/p/${project.id}/notifications/${id}`);
  const phone = await herald.browser.signedIn(`/p/${project.id}/notifications/${id}`, { dark: true, width: 360 });
  for (const shown of [page, phone]) {
    await shown.getByText("Waits for its file.").waitFor();
    await shown.getByRole("heading", { name: "Upload its file" }).waitFor();
  }

  const line = (at: number) => `${JSON.stringify({ target: `user:${at === 0 ? "ann" : at}`, variables: { n: at } })}\n`;
  const known = Array.from({ length: 2_500 }, (_, at) => line(at));
  const lines = `${known.join("")}not JSON\n${line(0)}`;
  const { promise: rest, resolve: send } = Promise.withResolvers<void>();
  const upload = fetch(`${herald.system.gateway}/api/v1/notifications/${id}/recipients`, {
    method: "PUT",
    headers: { authorization: `Bearer ${project.token}`, "content-type": "application/x-ndjson" },
    duplex: "half",
    body: new ReadableStream({
      start: (controller) => controller.enqueue(Buffer.from(lines)),
      pull: async (controller) => {
        await rest;
        controller.close();
      },
    }),
  } as RequestInit);
  await page.getByText(/Herald has 2,000 lines, .* It waits for more\./).waitFor();
  await page.getByText("has no active device").first().waitFor();
  send();
  expect((await upload).status).toBe(200);
  for (const shown of [page, phone]) {
    await shown.getByText("All 2,502 lines were read.").waitFor();
    await shown.getByText("Refused lines").waitFor();
    await shown.getByText("Duplicates, left out").waitFor();
    await shown.getByRole("heading", { name: "Lines that were not sent" }).waitFor();
    await shown.getByRole("button", { name: "More" }).click();
    await shown.getByRole("cell", { name: "40", exact: true }).waitFor();
    expectCalm(shown);
  }
});
