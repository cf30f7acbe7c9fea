import { eventually } from "@herald/testing";
import { expect } from "vitest";
import { statusOf, useWebKit } from "./person.ts";
import { test } from "./shared-system.ts";

/** A person chooses on the example site what this browser gets; the console shows what that does. */

const kit = useWebKit();

test("a kind that a person switches off on the site is skipped, and the console says why", async () => {
  const page = await kit.person.subscribed();
  const { device } = await statusOf(page);
  const offers = page.locator('input[name="offers"]');
  await offers.waitFor();
  expect(await offers.isChecked()).toBe(true);
  await page.getByText("Offers", { exact: true }).click();
  const chosen = async () => (await kit.project.call(`GET /devices/${device}/preferences`)).body.data.kinds;
  await eventually(async () =>
    expect(await chosen()).toContainEqual({
      kind: "offers",
      title: "Offers",
      on: false,
      critical: false,
      set_by: "device",
    }),
  );
  await page.reload();
  await offers.waitFor();
  expect(await offers.isChecked()).toBe(false);
  expect(await page.locator('input[name="order-shipped"]').isChecked()).toBe(true);

  const targets = [`device:${device}`];
  const skipped = await kit.person.send({ title: "Half price", kind: "offers", targets });
  expect(skipped.pushes).toEqual([]);
  expect(await kit.project.notification(skipped.id)).toMatchObject({ counts: { skipped: 1 }, skips: { muted: 1 } });
  const sent = await kit.person.send({ title: "Shipped", kind: "order-shipped", targets });
  expect(sent.pushes).toHaveLength(1);

  const { body } = await kit.system.admin("POST /sessions/codes");
  const at = `/p/${kit.project.id}/notifications/${skipped.id}`;
  const console = await kit.browser.visit(`${kit.system.gateway}/console${at}#code=${body.data.code}`);
  await console.getByText("Why devices failed or were skipped").waitFor();
  await console.getByText("muted").first().waitFor();
  await console.goto(`${kit.system.gateway}/console${at}/devices/${device}`);
  await console
    .getByText(/switched off|muted/)
    .first()
    .waitFor();
  await console.goto(`${kit.system.gateway}/console/p/${kit.project.id}/settings/kinds`);
  await console.getByText("2 per day").waitFor();

  // And on again.
  await page.bringToFront();
  await page.getByText("Offers", { exact: true }).click();
  await eventually(async () =>
    expect((await chosen()).find(({ kind }: { kind: string }) => kind === "offers").on).toBe(true),
  );
  expect((await kit.person.send({ title: "Half price", kind: "offers", targets })).pushes).toHaveLength(1);

  // Two switches at once: neither takes the other back.
  await page.evaluate(
    `for (const name of ["offers", "order-shipped"]) document.querySelector(\`input[name="\${name}"]\`).click()`,
  );
  await eventually(async () => {
    const off = (await chosen()).filter(({ on }: { on: boolean }) => !on).map(({ kind }: { kind: string }) => kind);
    expect(off.toSorted()).toEqual(["offers", "order-shipped"]);
  });
  expect(kit.browser.errors).toEqual([]);
});
