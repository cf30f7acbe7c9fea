import type { Push } from "@herald/simulators";
import { eventually } from "@herald/testing";
import { expect, test } from "vitest";
import { reaches, statusOf, useWebKit } from "./person.ts";

/** The browser kit in a real Chromium, on the example site, against a running system. */

const kit = useWebKit();

test("subscribes from a click, shows a push, opens its link, and the open is in the statistics", async () => {
  await kit.person.allow();
  const page = await kit.browser.open();
  await reaches(page, { permission: "granted", subscribed: false });
  expect(kit.browser.pushService.made()).toBe(0);
  await page.click("#subscribe");
  const { device } = await reaches(page, { subscribed: true, pending: false, problem: null });

  const { id, pushes } = await kit.person.send({ title: "First", body: "Words", targets: [`device:${device}`] });
  expect(await kit.browser.deliver(pushes[0] as Push)).toBe(true);
  await kit.person.isShown("First");
  expect((await kit.person.shown())[0]).toMatchObject({
    body: "Words",
    data: { notification_id: id, link_to: "/inbox" },
  });
  await eventually(async () => expect(await page.textContent("#pushes")).toContain("First"));

  expect(await kit.person.click("First")).toEqual([`open ${kit.system.example.url}/inbox`]);
  expect(await kit.person.shown()).toEqual([]);
  await kit.person.opened(id);
  const from = new Date(Date.now() - 3_600_000).toISOString();
  await eventually(async () => {
    const { body } = await kit.project.call(`GET /stats?notification=${id}&from=${encodeURIComponent(from)}`);
    expect(body.data.totals ?? body.data).toMatchObject({ opened: 1 });
  });
  expect(kit.browser.errors).toEqual([]);
});

test("a click brings the tab to the front that shows the page already, and counts once", async () => {
  const page = await kit.person.subscribed();
  const { device } = await statusOf(page);
  await page.goto(`${kit.system.example.url}/inbox`);
  const { id, pushes } = await kit.person.send({ targets: [`device:${device}`] });
  await kit.browser.deliver(pushes[0] as Push);
  await kit.person.isShown("Hello");
  expect(await kit.person.click("Hello")).toEqual([`focus ${kit.system.example.url}/inbox`]);
  await kit.person.opened(id);
});

test("topics, and a log-in that lasts until the browser starts again", async () => {
  const page = await kit.person.subscribed();
  await kit.person.logIn(page, "u-topics");
  await page.click("#news");
  await reaches(page, { topics: ["news"], pending: false });
  const { device } = await statusOf(page);
  const known = (await kit.project.call("GET /users/u-topics")).body.data.devices;
  expect(known).toMatchObject([{ id: device, user_id: "u-topics", topics: ["news"] }]);
  await kit.browser.restart();
  await kit.person.allow();
  const again = await kit.browser.open();
  await reaches(again, { topics: ["news"], user: "u-topics", subscribed: true, device });
  await again.click("#news");
  await reaches(again, { topics: [], pending: false });
  await again.click("#unsubscribe");
  await reaches(again, { subscribed: false, pending: false });
  expect((await kit.project.call("GET /users/u-topics")).status).toBe(404);
  expect(kit.browser.pushService.current()).toBeUndefined();
  expect(kit.browser.errors).toEqual([]);
});
