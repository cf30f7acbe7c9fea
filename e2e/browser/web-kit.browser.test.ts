import type { NotificationId } from "@herald/contracts";
import { renderDeclarative } from "@herald/payload";
import type { Push } from "@herald/simulators";
import { eventually } from "@herald/testing";
import type { Page } from "playwright-core";
import { expect } from "vitest";
import { payloadOf } from "../harness/simulators.ts";
import { reaches, statusOf, useWebKit } from "./person.ts";
import { test } from "./shared-system.ts";

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

/** Sends to a device. Returns the address that a click opens in Safari, which shows the notification without the worker. */
const sendToSafari = async (page: Page, linkTo: string) => {
  const { device } = await statusOf(page);
  const { id, pushes } = await kit.person.send({ title: "Safari", link_to: linkTo, targets: [`device:${device}`] });
  const origin = { projectId: kit.project.id, notificationId: id as NotificationId };
  const content = { title: "Safari", link_to: linkTo, targets: ["all"] };
  const body = renderDeclarative(content, origin, kit.system.example.url)(payloadOf(pushes[0] as Push).token ?? "");
  const { navigate } = JSON.parse(body ?? "{}").notification;
  return { id, path: String(navigate).slice(kit.system.example.url.length) };
};

/** The opens that a page reports. */
const opensOf = (page: Page): string[] => {
  const reported: string[] = [];
  page.on("request", (request) => {
    if (request.method() === "PUT" && request.url().endsWith("/open")) reported.push(request.url());
  });
  return reported;
};

test.each([
  ["/inbox", "/inbox"],
  ["/inbox?from=push#top", "/inbox?from=push#top"],
])(
  "Safari opens %s without the worker: the page reports the open once, and its address is clean",
  async (link, seen) => {
    const page = await kit.person.subscribed();
    const { id, path } = await sendToSafari(page, link);
    expect(path).toContain(`herald=${id}.v2.`);
    const reported = opensOf(page);
    await page.goto(kit.system.example.url + path);
    await reaches(page, { subscribed: true, pending: false });
    expect(page.url()).toBe(kit.system.example.url + seen);
    await kit.person.opened(id);
    await page.reload();
    await reaches(page, { subscribed: true, pending: false });
    expect(reported).toHaveLength(1);
    expect(kit.browser.errors).toEqual([]);
  },
);

test("offline when Safari opens the page: the open is kept, over a reload, until Herald answers", async () => {
  const page = await kit.person.subscribed();
  const { id, path } = await sendToSafari(page, "/inbox");
  await page.route("**/api/v1/**", (route) => route.abort());
  const reported = opensOf(page);
  await page.goto(kit.system.example.url + path);
  await eventually(() => expect(reported.length).toBeGreaterThan(0));
  expect(page.url()).toBe(`${kit.system.example.url}/inbox`);
  await page.reload();
  await eventually(() => expect(reported.length).toBeGreaterThan(1));
  expect((await kit.project.notification(id)).counts.opened).toBe(0);
  await page.unroute("**/api/v1/**");
  await page.reload();
  await kit.person.opened(id);
});

test("a forged open does not count and is named, and an address of the site's own is left alone", async () => {
  const page = await kit.person.subscribed();
  const { id } = await sendToSafari(page, "/inbox");
  await page.goto(`${kit.system.example.url}/inbox#herald=${id}.v2.forged`);
  const problem = expect.objectContaining({ slug: "open-token-invalid", retry: false });
  await reaches(page, { subscribed: true, pending: false, problem });
  expect(page.url()).toBe(`${kit.system.example.url}/inbox`);
  await page.goto(`${kit.system.example.url}/inbox?herald=crest&page=2#herald`);
  await reaches(page, { subscribed: true, pending: false, problem: null });
  expect(page.url()).toBe(`${kit.system.example.url}/inbox?herald=crest&page=2#herald`);
  expect((await kit.project.notification(id)).counts.opened).toBe(0);
});

const buttons = [
  { id: "track", title: "Track", link_to: "/orders/42" },
  { id: "later", title: "Later", opens: false },
];

test("reports what it shows and what is dismissed, and which button opened it", async () => {
  const page = await kit.person.subscribed();
  const { device } = await statusOf(page);
  const target = { targets: [`device:${device}`], receipts: true, buttons };
  const counts = async (id: string) => (await kit.project.notification(id)).counts;

  const first = await kit.person.send({ title: "Pressed", ...target });
  await kit.browser.deliver(first.pushes[0] as Push);
  await kit.person.isShown("Pressed");
  await eventually(async () =>
    expect(await counts(first.id)).toMatchObject({ receipts_asked: 1, received: 1, opened: 0 }),
  );
  expect(await kit.person.click("Pressed", "track")).toEqual([`open ${kit.system.example.url}/orders/42`]);
  await eventually(async () => expect(await counts(first.id)).toMatchObject({ opened: 1, buttons: { track: 1 } }));

  const second = await kit.person.send({ title: "Quiet", ...target });
  await kit.browser.deliver(second.pushes[0] as Push);
  await kit.person.isShown("Quiet");
  expect(await kit.person.click("Quiet", "later")).toEqual([]);
  await eventually(async () => expect(await counts(second.id)).toMatchObject({ opened: 1, buttons: { later: 1 } }));

  const third = await kit.person.send({ title: "Dismissed", ...target });
  await kit.browser.deliver(third.pushes[0] as Push);
  await kit.person.isShown("Dismissed");
  await kit.person.dismiss("Dismissed");
  await eventually(async () => expect(await counts(third.id)).toMatchObject({ received: 1, dismissed: 1, opened: 0 }));
  expect(kit.browser.errors).toEqual([]);
});

test("reports without a network are sent later, with the time at which they happened", async () => {
  const page = await kit.person.subscribed();
  const { device } = await statusOf(page);
  const { id, pushes } = await kit.person.send({ title: "Offline", targets: [`device:${device}`], receipts: true });
  await kit.browser.setOffline(true);
  await kit.browser.deliver(pushes[0] as Push);
  await kit.person.isShown("Offline");
  expect((await kit.project.notification(id)).counts.received).toBe(0);
  await kit.browser.setOffline(false);
  await page.reload();
  await eventually(async () => expect((await kit.project.notification(id)).counts.received).toBe(1));
});
