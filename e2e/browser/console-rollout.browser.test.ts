import { expect } from "vitest";
import { logOnFailure } from "../harness/system.ts";
import { expectCalm } from "./console-page.ts";
import { problemsAtBothWidths } from "./page-checks.ts";
import { type SharedConsole, test } from "./shared-console.ts";

/** A rollout in the console, in a real Chromium against a running system. */

let herald: SharedConsole;
test.beforeAll(({ herald: shared }) => {
  herald = shared;
});
logOnFailure(() => herald?.system);

test("a rollout is composed, stands behind its canary, is slowed down, and is a draft again", {
  timeout: 240_000,
}, async () => {
  const project = await herald.system.project("Careful");
  await project.register();
  const page = await herald.browser.signedIn(`/p/${project.id}/compose`);
  await page.getByLabel("Title").fill("Half price");
  await page.getByLabel("Targets").first().fill("all");
  await page.keyboard.press("Enter");
  await page.getByText("Rollout", { exact: true }).click();
  const share = page.getByLabel("Begin with");
  await share.fill("60");
  await page.getByText("Between 0.025 % and 50 %").waitFor();
  await page.getByText("See Begin with.").waitFor();
  await share.fill("25");
  await page.getByLabel("Wait", { exact: true }).fill("24h");
  await page.getByLabel("Devices a minute").fill("600");
  await page.getByLabel("Pause when failures exceed").fill("5");
  await page.getByText("Rollout: about 0 devices first, at least 1,441 min in all").waitFor();
  expect(await problemsAtBothWidths(page)).toEqual([]);

  // What has waves of its own has no rollout.
  await page.getByText("Local time", { exact: true }).click();
  await share.waitFor({ state: "detached" });
  await page.getByText("Now", { exact: true }).click();
  await page.getByRole("button", { name: "Send to 1 device…" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByText("about 0 devices first, at least 1,441 min in all").waitFor();
  await dialog.getByRole("button", { name: "Send to 1 device" }).click();
  await page.waitForURL(/\/notifications\/ntf_/);
  const id = new URL(page.url()).pathname.split("/").at(-1) ?? "";
  await page.getByText("Waiting until the next part begins").waitFor();
  await page.getByText("25 % of the devices; the others wait 24h").waitFor();
  await page.getByText("5 % failed").waitFor();
  await page.getByText(/^[01] of about 1 devices are released$/).waitFor();
  expect(await project.notification(id)).toMatchObject({
    rollout: { canary: { share: 0.25, wait: "24h" }, per_minute: 600, stop_if: { failed: 0.05 }, phase: "waiting" },
  });
  expect(await problemsAtBothWidths(page)).toEqual([]);

  await page.getByRole("button", { name: "Slow down" }).click();
  const speed = dialog.getByLabel("Devices a minute");
  await speed.fill("700");
  await dialog.getByRole("button", { name: "Slow down" }).click();
  await dialog.getByText(/must be from 1 to 600/).waitFor();
  await speed.fill("60");
  await dialog.getByRole("button", { name: "Slow down" }).click();
  await page.getByText(/at most 60$/).waitFor();
  expect(await project.notification(id)).toMatchObject({ rollout: { per_minute: 60 } });

  await page.getByRole("button", { name: "Cancel sending" }).click();
  await dialog.getByRole("button", { name: "Cancel sending" }).click();
  await page.getByRole("button", { name: "Slow down" }).waitFor({ state: "detached" });
  await page.getByRole("button", { name: "Use as draft" }).click();
  await page.getByLabel("Pause when failures exceed").waitFor();
  expect(await page.getByLabel("Devices a minute").inputValue()).toBe("60");
  expectCalm(page);
});
