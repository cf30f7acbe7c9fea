import type { ProjectId } from "@herald/contracts";
import type { Push } from "@herald/simulators";
import { eventually } from "@herald/testing";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { type Project, projectClient } from "../harness/project.ts";
import { logOnFailure, type System, startSystem } from "../harness/system.ts";
import { claimsOf, hs256, nowSeconds } from "../harness/user-tokens.ts";
import { type Browser, ready, startBrowser } from "./browser.ts";
import type { PageScope, WorkerScope } from "./browser-globals.ts";
import { createPerson, reaches, statusOf } from "./person.ts";

/** The browser kit in a real Chromium, on the example site, against a running system. */

let system: System;
let project: Project;
let browser: Browser;
let person: ReturnType<typeof createPerson>;
beforeAll(async () => {
  system = await startSystem();
  browser = await startBrowser(system);
  project = projectClient(system.gateway, system.example.project as { id: ProjectId; token: string });
  person = createPerson(system, project, browser);
});
afterAll(async () => {
  await browser?.close();
  await system?.stop();
});
beforeEach(() => browser.reset());
logOnFailure(() => system);

const noErrors = () => expect(browser.errors).toEqual([]);

test("subscribes from a click, shows a push, opens its link, and the open is in the statistics", async () => {
  await person.allow();
  const page = await browser.open();
  await reaches(page, { permission: "granted", subscribed: false });
  expect(browser.pushService.made()).toBe(0);
  await page.click("#subscribe");
  const { device } = await reaches(page, { subscribed: true, pending: false, problem: null });

  const { id, pushes } = await person.send({ title: "First", body: "Words", targets: [`device:${device}`] });
  expect(await browser.deliver(pushes[0] as Push)).toBe(true);
  await person.isShown("First");
  expect((await person.shown())[0]).toMatchObject({ body: "Words", data: { notification_id: id, link_to: "/inbox" } });
  await eventually(async () => expect(await page.textContent("#pushes")).toContain("First"));

  expect(await person.click("First")).toEqual([`open ${system.example.url}/inbox`]);
  expect(await person.shown()).toEqual([]);
  await person.opened(id);
  const from = new Date(Date.now() - 3_600_000).toISOString();
  await eventually(async () => {
    const { body } = await project.call(`GET /stats?notification=${id}&from=${encodeURIComponent(from)}`);
    expect(body.data.totals ?? body.data).toMatchObject({ opened: 1 });
  });
  noErrors();
});

test("a click brings the tab to the front that shows the page already, and counts once", async () => {
  const page = await person.subscribed();
  const { device } = await statusOf(page);
  await page.goto(`${system.example.url}/inbox`);
  const { id, pushes } = await person.send({ targets: [`device:${device}`] });
  await browser.deliver(pushes[0] as Push);
  await person.isShown("Hello");
  expect(await person.click("Hello")).toEqual([`focus ${system.example.url}/inbox`]);
  await person.opened(id);
});

test("topics, and a log-in that lasts until the browser starts again", async () => {
  const page = await person.subscribed();
  await person.logIn(page, "u-topics");
  await page.click("#news");
  await reaches(page, { topics: ["news"], pending: false });
  const { device } = await statusOf(page);
  const known = (await project.call("GET /users/u-topics")).body.data.devices;
  expect(known).toMatchObject([{ id: device, user_id: "u-topics", topics: ["news"] }]);
  await browser.restart();
  await person.allow();
  const again = await browser.open();
  await reaches(again, { topics: ["news"], user: "u-topics", subscribed: true, device });
  await again.click("#news");
  await reaches(again, { topics: [], pending: false });
  await again.click("#unsubscribe");
  await reaches(again, { subscribed: false, pending: false });
  expect((await project.call("GET /users/u-topics")).status).toBe(404);
  expect(browser.pushService.current()).toBeUndefined();
  noErrors();
});

describe("bad days", () => {
  test("permission refused, then granted in the browser's settings", async () => {
    const page = await browser.open();
    await browser.setNotifications("denied");
    await page.click("#subscribe");
    await reaches(page, { permission: "denied", subscribed: false });
    expect(browser.pushService.made()).toBe(0);
    await person.allow();
    await reaches(page, { permission: "granted", subscribed: true, pending: false });
    noErrors();
  });

  test("a page that subscribes when it loads is told to wait for a click", async () => {
    const first = await browser.open();
    await first.context().route("**/at-once", (route) =>
      route.fulfill({
        contentType: "text/html",
        body: `<body><pre id="status"></pre><script type="module">
          import { createHerald } from "/herald.js";
          const { gateway, project } = await (await fetch("/config.json")).json();
          const status = await createHerald({ gateway, project }).subscribe();
          document.getElementById("status").textContent = JSON.stringify(status);
          document.body.dataset.ready = "true";
        </script></body>`,
      }),
    );
    const page = await browser.open("/at-once");
    await reaches(page, { permission: "default", problem: expect.objectContaining({ slug: "needs-click" }) });
    await page.context().unroute("**/at-once");
  });

  test("storage cleared: the browser is a new device, and what was sent to the old one is not shown", async () => {
    const page = await person.subscribed();
    const before = await statusOf(page);
    const { pushes } = await person.send({ title: "Old", targets: [`device:${before.device}`] });
    await page.evaluate(() => {
      const { indexedDB } = globalThis as unknown as PageScope;
      return new Promise<void>((resolve) => {
        indexedDB.deleteDatabase("herald").onsuccess = resolve;
      });
    });
    await page.reload();
    await ready(page);
    await page.click("#subscribe");
    const after = await reaches(page, { subscribed: true, pending: false });
    expect(after.device).not.toBe(before.device);
    expect(browser.pushService.made()).toBe(2);
    expect(await browser.deliver(pushes[0] as Push)).toBe(false);
    await browser.deliverText(JSON.stringify(pushes[0]?.payload));
    const { pushes: fresh } = await person.send({ title: "New", targets: [`device:${after.device}`] });
    await browser.deliver(fresh[0] as Push);
    await person.isShown("New");
    expect(await person.shown()).toHaveLength(1);
    noErrors();
  });

  test("two tabs subscribe at the same moment: one device, and both show it", async () => {
    await person.allow();
    const [one, two] = [await browser.open(), await browser.open()];
    await Promise.all([one.click("#subscribe"), two.click("#subscribe")]);
    const { device } = await reaches(one, { subscribed: true });
    await reaches(two, { subscribed: true, device });
    expect(browser.pushService.made()).toBe(1);
    await person.logIn(one, "u-two-tabs");
    await reaches(two, { user: "u-two-tabs" });
    noErrors();
  });

  test("an expired user token: the device stays, without a user, and a fresh one logs in", async () => {
    const page = await person.subscribed();
    const { id, identitySecret } = system.example.project;
    const old = nowSeconds() - 7_200;
    const expired = hs256(identitySecret, { claims: claimsOf(id, "u-late", { iat: old, exp: old + 60 }) });
    await page.route("**/session", (route) => route.fulfill({ json: { user_token: expired } }));
    await page.click("#login");
    const { device } = await reaches(page, { problem: expect.objectContaining({ slug: "user-token-invalid" }) });
    expect(await statusOf(page)).toMatchObject({ subscribed: true, user: null, pending: false });
    await page.unroute("**/session");
    await person.logIn(page, "u-late");
    expect((await statusOf(page)).device).toBe(device);
  });

  test("offline at the click: the open is sent when the browser is back", async () => {
    const page = await person.subscribed();
    const { device } = await statusOf(page);
    const { id, pushes } = await person.send({ targets: [`device:${device}`] });
    await browser.deliver(pushes[0] as Push);
    await person.isShown("Hello");
    await browser.setOffline(true);
    await person.click("Hello");
    expect((await project.notification(id)).counts.opened).toBe(0);
    await browser.setOffline(false);
    await person.opened(id);
  });

  test("offline at the log-in and the topic: kept, over a reload, until the browser is back", async () => {
    const page = await person.subscribed();
    await page.fill("#user", "u-offline");
    await page.route("**/api/v1/**", (route) => route.abort());
    await page.click("#login");
    await reaches(page, { pending: true, user: null, problem: expect.objectContaining({ slug: "offline" }) });
    await page.click("#news");
    // It shows the topic once Herald has it: until then it is stored.
    await eventually(async () => expect(await page.isChecked("#news")).toBe(false));
    await page.unroute("**/api/v1/**");
    await page.reload();
    await reaches(page, { pending: false, user: "u-offline", topics: ["news"] });
  });

  test("a payload of another version is shown as far as it is understood", async () => {
    const page = await person.subscribed();
    const { device } = await statusOf(page);
    const { id, pushes } = await person.send({ targets: [`device:${device}`] });
    const payload = pushes[0]?.payload as Record<string, unknown>;
    const ways: Record<string, unknown>[] = [
      {
        ...payload,
        version: 9,
        notification: { title: "Later", icon: 7, image: "::", actions: "none", silent: 1, vibrate: {} },
      },
      { ...payload, notification: { body: "No title", tag: "b" } },
      { ...payload, notification: { title: "Numbers", body: 4, tag: 5 }, link_to: "javascript:alert(1)" },
    ];
    for (const way of ways) await browser.deliverText(JSON.stringify(way));
    for (const other of [
      "",
      "not JSON",
      "null",
      "[]",
      '{"notification":{"title":"Of another sender"}}',
      JSON.stringify({ ...payload, notification: "text" }),
    ])
      await browser.deliverText(other);
    await eventually(async () => expect((await browser.showed()).toSorted()).toEqual(["", "Later", "Numbers"]));
    expect(await person.click("Numbers")).toEqual([`focus ${system.example.url}/`]);
    await person.opened(id);
    noErrors();
  });

  test("a rotated VAPID key: the device moves to the new key and gets what is sent", async () => {
    const page = await person.subscribed();
    const { device } = await statusOf(page);
    await person.logIn(page, "u-rotated");
    const first = browser.pushService.current();
    const keys = `/projects/${project.id}/providers/webpush/keys`;
    const { body } = await system.admin(`POST ${keys}`, { body: {} });
    await system.admin(`PATCH ${keys}/${body.data.id}`, { body: { key: { status: "current" } } });
    // The next day.
    await page.clock.setSystemTime(Date.now() + 90_000_000);
    await page.reload();
    await eventually(() => expect(browser.pushService.made()).toBe(2));
    await reaches(page, { subscribed: true, device, user: "u-rotated", pending: false });
    expect(browser.pushService.current()?.applicationServerKey).not.toBe(first?.applicationServerKey);
    const { pushes } = await person.send({ targets: ["user:u-rotated"] });
    expect(await browser.deliver(pushes[0] as Push)).toBe(true);
    await person.isShown("Hello");
  });

  test("a subscription that the browser replaced is registered by the worker", async () => {
    const page = await person.subscribed();
    const { device } = await statusOf(page);
    await person.logIn(page, "u-replaced");
    const other = await system.simulators.subscribe();
    const { applicationServerKey } = browser.pushService.current() ?? {};
    const worker = await browser.worker();
    await worker.evaluate(
      async ({ endpoint, keys, key }) => {
        const scope = globalThis as unknown as WorkerScope;
        scope.PushManager.prototype.getSubscription = async () => null;
        scope.PushManager.prototype.subscribe = async () => ({
          endpoint,
          options: { applicationServerKey: key },
          toJSON: () => ({ endpoint, keys }),
        });
        const event = new scope.ExtendableEvent("pushsubscriptionchange");
        let done: Promise<unknown> | undefined;
        // Only the browser's own events can be waited for.
        event.waitUntil = (work: Promise<unknown>) => {
          done = work;
        };
        scope.dispatchEvent(event);
        await done;
      },
      { ...other, key: applicationServerKey },
    );
    const { pushes } = await person.send({ targets: ["user:u-replaced"] });
    expect(pushes.map(({ token }) => token)).toEqual([other.endpoint]);
    await page.close();
    expect((await project.call(`GET /devices/${device}`)).body.data).toMatchObject({
      status: "active",
      user_id: "u-replaced",
    });
  });

  test("a user who logged out: what was shown goes, what is on its way is not shown, and the device stays", async () => {
    const page = await person.subscribed();
    const { device } = await statusOf(page);
    await person.logIn(page, "u-ann");
    await page.click("#news");
    await reaches(page, { topics: ["news"] });
    const seen = await person.send({ title: "Seen", targets: ["user:u-ann"] });
    await browser.deliver(seen.pushes[0] as Push);
    await person.isShown("Seen");
    const late = await person.send({ title: "Late", targets: ["user:u-ann"] });

    // Herald does not answer what it was asked before, and cannot be reached: the log-out holds all the same.
    await page.route("**/api/v1/**", () => undefined);
    await page.fill("#user", "u-ann");
    await page.click("#login");
    await page.click("#logout");
    await eventually(async () => expect(await person.shown()).toEqual([]));
    expect(browser.pushService.current()).toBeUndefined();
    await browser.deliverText(JSON.stringify(late.pushes[0]?.payload));
    await page.unroute("**/api/v1/**");
    await page.route("**/api/v1/**", (route) => route.abort());
    await page.reload();
    await reaches(page, { user: null, subscribed: false, pending: true });
    expect(await browser.deliver(late.pushes[0] as Push)).toBe(false);
    await browser.deliverText(JSON.stringify(late.pushes[0]?.payload));
    await page.unroute("**/api/v1/**");
    await page.reload();
    await reaches(page, { user: null, subscribed: true, pending: false, device, topics: ["news"] });
    expect(await browser.deliver(late.pushes[0] as Push)).toBe(false);

    // The next user of the browser gets what is theirs, and nothing of the first one's.
    await person.logIn(page, "u-bob");
    expect((await project.call("GET /users/u-ann")).status).toBe(404);
    const bobs = await person.send({ title: "Bob's", targets: ["user:u-bob", "user:u-ann"] });
    await browser.deliver(bobs.pushes[0] as Push);
    await person.isShown("Bob's");
    expect(await person.shown()).toHaveLength(1);

    // Somebody else logs in without a log-out.
    await person.logIn(page, "u-cid");
    expect(await person.shown()).toEqual([]);
    expect(await browser.deliver(bobs.pushes[0] as Push)).toBe(false);
    expect((await statusOf(page)).device).toBe(device);
  });

  test("a device that Herald has forgotten is registered again", async () => {
    const page = await person.subscribed();
    const { device } = await statusOf(page);
    await person.logIn(page, "u-forgotten");
    await project.call(`DELETE /devices/${device}`);
    await page.click("#news");
    const after = await reaches(page, { subscribed: true, topics: ["news"], user: "u-forgotten", pending: false });
    expect(after.device).not.toBe(device);
  });
});
