import { eventually, expectStatus, request } from "@herald/testing";
import { expect } from "vitest";
import { newAddress } from "../harness/seed.ts";
import { payloadOf } from "../harness/simulators.ts";
import { logOnFailure } from "../harness/system.ts";
import { expectCalm } from "./console-page.ts";
import { type SharedConsole, test } from "./shared-console.ts";

let herald: SharedConsole;
test.beforeAll(({ herald: shared }) => {
  herald = shared;
});
logOnFailure(() => herald?.system);

test("an operator asks for receipts, adds buttons, sees what each platform shows, and then what devices reported", async () => {
  const { system } = herald;
  const project = await system.project("Receipts in the console", ["apns", "fcm", "webpush"]);
  const capabilities = ["draws", "receipts", "buttons"];
  for (const platform of ["ios", "android", "web"] as const)
    await project.register({ ...(await newAddress(system.simulators, platform)), platform, capabilities });

  const page = await herald.browser.signedIn(`/p/${project.id}/compose`);
  await page.getByLabel("Title", { exact: true }).fill("Your order has shipped");
  await page.getByLabel("Text", { exact: true }).fill("It arrives tomorrow between 10 and 12.");
  await page.getByRole("combobox", { name: "Targets" }).fill("all");
  await page.getByRole("combobox", { name: "Targets" }).press("Enter");
  await page.getByText("Receipts and buttons").click();
  await page.getByLabel("Receipts", { exact: true }).fill("150");
  await page.getByText("must be true, false or from 0 to 1").first().waitFor();
  await page.getByLabel("Receipts", { exact: true }).fill("100");
  await page.getByText("shows nothing of it").waitFor();
  await page.getByRole("button", { name: "Add a button" }).click();
  const first = page.getByRole("group", { name: "Button 1" });
  await first.getByLabel("Button's title").fill("Track");
  await first.getByLabel("Button's id").fill("track");
  await first.getByLabel("Button's link").fill("javascript:alert(1)");
  await first.getByText("may not begin with").waitFor();
  await first.getByLabel("Button's link").fill("/orders/42");
  await page.getByRole("button", { name: "Add a button" }).click();
  const second = page.getByRole("group", { name: "Button 2" });
  await second.getByLabel("Button's title").fill("Later");
  await second.getByLabel("Opens the app").uncheck();
  await second.getByLabel("Button's link").waitFor({ state: "detached" });

  const preview = page.locator("section.panel", { hasText: "Preview" });
  await preview.getByRole("list", { name: "Buttons" }).getByText("Later").waitFor();
  await preview.getByText(/\d+ of 4,096 bytes/).waitFor();
  await preview.getByText("Android", { exact: true }).click();
  await preview.getByText("Drawn by the app").waitFor();
  await preview.getByRole("list", { name: "Buttons" }).getByText("Track").waitFor();
  await preview.getByText("Web", { exact: true }).click();
  await preview.getByRole("list", { name: "Buttons" }).getByText("Track").waitFor();

  await page.getByRole("button", { name: "Send to 3 devices…" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Send to 3 devices" }).click();
  await page.getByText("From devices to opens").waitFor();
  const pushes = await eventually(async () => {
    const found = (await system.simulators.pushes()).filter((push) => payloadOf(push)?.project_id === project.id);
    expect(found).toHaveLength(3);
    return found.map(payloadOf);
  });
  const report = async (at: number, verb: string, more: object = {}) => {
    const { notification_id: id, token } = pushes[at] ?? { notification_id: "", token: "" };
    const body = { project_id: project.id, token, ...more };
    expectStatus(await request(system.gateway, `PUT /api/v1/notifications/${id}/${verb}`, { body }), 204);
  };
  for (const at of [0, 1, 2]) await report(at, "received");
  await report(0, "open", { button: "track" });
  await report(1, "dismissed");
  await page.getByText("of 3 asked").waitFor();
  await page.getByText("track 1").waitFor();
  await page.getByText("Dismissed: 1").waitFor();
  const deliveries = page.getByRole("region", { name: "Deliveries" });
  for (const text of ["opened", "dismissed", "received", "button track"]) await deliveries.getByText(text).waitFor();
  await page.getByRole("link", { name: "Overview" }).click();
  await page.getByText("Received, of 3 asked").waitFor();
  expectCalm(page);
});

test("an operator has a send to a user followed up, and sees when", async () => {
  const project = await herald.system.project("Followed up in the console");
  await project.register({ user_id: "ann" });
  const page = await herald.browser.signedIn(`/p/${project.id}/compose`);
  await page.getByLabel("Title", { exact: true }).fill("Your table is ready");
  await page.getByRole("combobox", { name: "Targets" }).fill("user:ann");
  await page.getByRole("combobox", { name: "Targets" }).press("Enter");
  await page.getByText("Receipts and buttons").click();
  await page.getByLabel("Follow up after").fill("30");
  await page.getByText("must be a whole number of seconds from 60").first().waitFor();
  await page.getByLabel("Follow up after").fill("3600");
  await page.getByRole("button", { name: "Send to 1 device…" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Send to 1 device" }).click();
  await page.getByText("From devices to opens").waitFor();
  await page.getByText("after 1 h", { exact: true }).waitFor();
  expectCalm(page);
  expect(await project.notifications()).toMatchObject([{ targets: ["user:ann"], escalate_after: 3_600 }]);
});
