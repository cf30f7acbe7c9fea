import type { Push } from "@herald/simulators";
import { eventually, startRedirectingServer } from "@herald/testing";
import { expect } from "vitest";
import { claimsOf, hs256, nowSeconds } from "../harness/user-tokens.ts";
import { ready } from "./browser.ts";
import type { PageScope, WorkerScope } from "./browser-globals.ts";
import { reaches, statusOf, useWebKit } from "./person.ts";
import { test } from "./shared-system.ts";

/** The browser kit when something fails, in a real Chromium on the example site. */

const kit = useWebKit();

test("permission refused, then granted in the browser's settings", async () => {
  const page = await kit.browser.open();
  await kit.browser.setNotifications("denied");
  // A press from just before: the page hides the button once the browser says so.
  await page.dispatchEvent("#subscribe", "click");
  await reaches(page, { permission: "denied", subscribed: false });
  expect(kit.browser.pushService.made()).toBe(0);
  await kit.person.allow();
  await reaches(page, { permission: "granted", subscribed: true, pending: false });
  expect(kit.browser.errors).toEqual([]);
});

test("a page that subscribes when it loads gets an error that asks for a click", async () => {
  const first = await kit.browser.open();
  await first.context().route("**/at-once", (route) =>
    route.fulfill({
      contentType: "text/html",
      body: `<script type="module">
        import { createHerald } from "/herald.js";
        const { gateway, project } = await (await fetch("/config.json")).json();
        console.log(JSON.stringify(await createHerald({ gateway, project }).subscribe()));
      </script>`,
    }),
  );
  const page = await first.context().newPage();
  // The page itself says when it is done: whatever Playwright evaluates in a page counts as a click there, and with a click the kit asks.
  const said = page.waitForEvent("console", (message) => message.type() === "log");
  await page.goto(`${kit.system.example.url}/at-once`);
  expect(JSON.parse((await said).text())).toMatchObject({ permission: "default", problem: { slug: "needs-click" } });
  await page.context().unroute("**/at-once");
});

test("storage cleared: the browser is a new device, and what was sent to the old one is not shown", async () => {
  const page = await kit.person.subscribed();
  const before = await statusOf(page);
  const { pushes } = await kit.person.send({ title: "Old", targets: [`device:${before.device}`] });
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
  expect(kit.browser.pushService.made()).toBe(2);
  expect(await kit.browser.deliver(pushes[0] as Push)).toBe(false);
  await kit.browser.deliverText(JSON.stringify(pushes[0]?.payload));
  const { pushes: fresh } = await kit.person.send({ title: "New", targets: [`device:${after.device}`] });
  await kit.browser.deliver(fresh[0] as Push);
  await kit.person.isShown("New");
  expect(await kit.person.shown()).toHaveLength(1);
  expect(kit.browser.errors).toEqual([]);
});

test("two tabs subscribe at the same moment: one device, and both show it", async () => {
  await kit.person.allow();
  const [one, two] = [await kit.browser.open(), await kit.browser.open()];
  await Promise.all([one.click("#subscribe"), two.click("#subscribe")]);
  const { device } = await reaches(one, { subscribed: true });
  await reaches(two, { subscribed: true, device });
  expect(kit.browser.pushService.made()).toBe(1);
  await kit.person.logIn(one, "u-two-tabs");
  await reaches(two, { user: "u-two-tabs" });
  expect(kit.browser.errors).toEqual([]);
});

test("an expired user token: the device stays, without a user, and a fresh one logs in", async () => {
  const page = await kit.person.subscribed();
  const { id, identitySecret } = kit.system.example.project;
  const old = nowSeconds() - 7_200;
  const expired = hs256(identitySecret, { claims: claimsOf(id, "u-late", { iat: old, exp: old + 60 }) });
  await page.route("**/session", (route) => route.fulfill({ json: { user_token: expired } }));
  await page.click("#login");
  const { device } = await reaches(page, { problem: expect.objectContaining({ slug: "user-token-invalid" }) });
  expect(await statusOf(page)).toMatchObject({ subscribed: true, user: null, pending: false });
  // A pass that has nothing to send, and another tab, keep the refusal.
  const says = async (event: () => unknown) => {
    await page.evaluate('document.querySelector("#status").replaceChildren()');
    await event();
    await reaches(page, { problem: expect.objectContaining({ slug: "user-token-invalid" }) });
  };
  await says(() => page.evaluate('dispatchEvent(new Event("online"))'));
  await says(() => kit.browser.open());
  await page.unroute("**/session");
  await kit.person.logIn(page, "u-late");
  expect((await statusOf(page)).device).toBe(device);
});

test("offline at the click: the open is sent when the browser is back", async () => {
  const page = await kit.person.subscribed();
  const { device } = await statusOf(page);
  const { id, pushes } = await kit.person.send({ targets: [`device:${device}`] });
  await kit.browser.deliver(pushes[0] as Push);
  await kit.person.isShown("Hello");
  await kit.browser.setOffline(true);
  await kit.person.click("Hello");
  expect((await kit.project.notification(id)).counts.opened).toBe(0);
  await kit.browser.setOffline(false);
  await kit.person.opened(id);
});

test("offline at the log-in and the topic: kept, over a reload, until the browser is back", async () => {
  const page = await kit.person.subscribed();
  await page.fill("#user", "u-offline");
  await page.route("**/api/v1/**", (route) => route.abort());
  await page.click("#login");
  await reaches(page, { pending: true, user: null, problem: expect.objectContaining({ slug: "offline" }) });
  await page.click("#news");
  // The kit stores the subscription, but shows the topic only after Herald has accepted it.
  await eventually(async () => expect(await page.isChecked("#news")).toBe(false));
  await page.unroute("**/api/v1/**");
  await page.reload();
  await reaches(page, { pending: false, user: "u-offline", topics: ["news"] });
});

test("a redirect gets neither credential nor body, and the change is kept", async () => {
  const page = await kit.person.subscribed();
  const redirecting = await startRedirectingServer();
  try {
    const headers = { location: redirecting.url, "access-control-allow-origin": "*" };
    await page.route("**/api/v1/**", (route) => route.fulfill({ status: 307, headers }));
    await page.click("#news");
    await reaches(page, { pending: true, problem: expect.objectContaining({ slug: "offline" }) });
    expect(redirecting.followed).toEqual([]);
  } finally {
    await redirecting.stop();
  }
  await page.unroute("**/api/v1/**");
  await page.reload();
  await reaches(page, { pending: false, problem: null, topics: ["news"] });
});

test("Herald asks to wait: no page and no worker calls it before, also after a reload", async () => {
  const page = await kit.person.subscribed();
  const { device } = await statusOf(page);
  const { id, pushes } = await kit.person.send({ targets: [`device:${device}`] });
  let refused = 0;
  await page.context().route("**/api/v1/**", (route) => {
    refused++;
    return route.fulfill({
      status: 503,
      headers: {
        "retry-after": "3600",
        "access-control-allow-origin": "*",
        "access-control-expose-headers": "Retry-After",
      },
    });
  });
  await page.click("#news");
  const problem = { status: 503, retry: true };
  await reaches(page, { pending: true, problem: expect.objectContaining(problem) });
  expect(refused).toBe(1);
  await page.reload();
  await reaches(page, { pending: true, problem: expect.objectContaining(problem) });
  await kit.browser.deliver(pushes[0] as Push);
  await kit.person.isShown("Hello");
  await kit.person.click("Hello");
  expect(refused).toBe(1);
  await page.context().unroute("**/api/v1/**");
  // An hour later.
  await page.clock.setSystemTime(Date.now() + 3_601_000);
  await page.reload();
  await reaches(page, { pending: false, problem: null, topics: ["news"] });
  await kit.person.opened(id);
});

test("a payload of a later version is shown with the fields that are known", async () => {
  const page = await kit.person.subscribed();
  const { device } = await statusOf(page);
  const { id, pushes } = await kit.person.send({ targets: [`device:${device}`] });
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
  for (const way of ways) await kit.browser.deliverText(JSON.stringify(way));
  for (const other of [
    "",
    "not JSON",
    "null",
    "[]",
    '{"notification":{"title":"Of another sender"}}',
    JSON.stringify({ ...payload, notification: "text" }),
  ])
    await kit.browser.deliverText(other);
  await eventually(async () => expect((await kit.browser.showed()).toSorted()).toEqual(["", "Later", "Numbers"]));
  expect(await kit.person.click("Numbers")).toEqual([`focus ${kit.system.example.url}/`]);
  await kit.person.opened(id);
  expect(kit.browser.errors).toEqual([]);
});

test("a rotated VAPID key: the device moves to the new key and gets what is sent", async () => {
  const page = await kit.person.subscribed();
  const { device } = await statusOf(page);
  await kit.person.logIn(page, "u-rotated");
  const first = kit.browser.pushService.current();
  const keys = `/projects/${kit.project.id}/providers/webpush/keys`;
  const { body } = await kit.system.admin(`POST ${keys}`, { body: {} });
  await kit.system.admin(`PATCH ${keys}/${body.data.id}`, { body: { key: { status: "current" } } });
  await eventually(async () => {
    const current = await kit.project.call(`GET /webpush-key?project_id=${kit.project.id}`, { token: undefined });
    expect(current.body.data.id).toBe(body.data.id);
  });
  // Two days later: an earlier test has moved the clock of this browser by an hour.
  await page.clock.setSystemTime(Date.now() + 180_000_000);
  await page.reload();
  await eventually(() => expect(kit.browser.pushService.made()).toBe(2));
  await reaches(page, { subscribed: true, device, user: "u-rotated", pending: false });
  expect(kit.browser.pushService.current()?.applicationServerKey).not.toBe(first?.applicationServerKey);
  const { pushes } = await kit.person.send({ targets: ["user:u-rotated"] });
  expect(await kit.browser.deliver(pushes[0] as Push)).toBe(true);
  await kit.person.isShown("Hello");
});

test("a subscription that the browser replaced is registered by the worker", async () => {
  const page = await kit.person.subscribed();
  const { device } = await statusOf(page);
  await kit.person.logIn(page, "u-replaced");
  const other = await kit.system.simulators.subscribe();
  const { applicationServerKey } = kit.browser.pushService.current() ?? {};
  const worker = await kit.browser.worker();
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
      // Browsers allow `waitUntil` only on their own events, so it is replaced.
      event.waitUntil = (work: Promise<unknown>) => {
        done = work;
      };
      scope.dispatchEvent(event);
      await done;
    },
    { ...other, key: applicationServerKey },
  );
  const { pushes } = await kit.person.send({ targets: ["user:u-replaced"] });
  expect(pushes.map(({ token }) => token)).toEqual([other.endpoint]);
  await page.close();
  expect((await kit.project.call(`GET /devices/${device}`)).body.data).toMatchObject({
    status: "active",
    user_id: "u-replaced",
  });
});

test("after a log-out, shown notifications disappear, later ones are not shown, and the device stays", async () => {
  const page = await kit.person.subscribed();
  const { device } = await statusOf(page);
  await kit.person.logIn(page, "u-ann");
  await page.click("#news");
  await reaches(page, { topics: ["news"] });
  const seen = await kit.person.send({ title: "Seen", targets: ["user:u-ann"] });
  await kit.browser.deliver(seen.pushes[0] as Push);
  await kit.person.isShown("Seen");
  const late = await kit.person.send({ title: "Late", targets: ["user:u-ann"] });

  // A pending call gets no answer and Herald is unreachable, but the log-out still takes effect.
  await page.route("**/api/v1/**", () => undefined);
  const token = page.waitForResponse("**/session"); // the log-out must not overtake the log-in
  await page.fill("#user", "u-ann");
  await page.click("#login");
  await token;
  await page.click("#logout");
  await eventually(async () => expect(await kit.person.shown()).toEqual([]));
  await eventually(async () => expect(kit.browser.pushService.current()).toBeUndefined());
  await kit.browser.deliverText(JSON.stringify(late.pushes[0]?.payload));
  // Without a moment between the two, in which a pending call would reach Herald.
  await page.route("**/api/v1/**", (route) => route.abort());
  await page.reload();
  await reaches(page, { user: null, subscribed: false, pending: true });
  expect(await kit.browser.deliver(late.pushes[0] as Push)).toBe(false);
  await kit.browser.deliverText(JSON.stringify(late.pushes[0]?.payload));
  await page.unroute("**/api/v1/**");
  await page.reload();
  await reaches(page, { user: null, subscribed: true, pending: false, device, topics: ["news"] });
  expect(await kit.browser.deliver(late.pushes[0] as Push)).toBe(false);

  // The next user of the browser gets their own pushes, and none of the first user's.
  await kit.person.logIn(page, "u-bob");
  expect((await kit.project.call("GET /users/u-ann")).status).toBe(404);
  const bobs = await kit.person.send({ title: "Bob's", targets: ["user:u-bob", "user:u-ann"] });
  await kit.browser.deliver(bobs.pushes[0] as Push);
  await kit.person.isShown("Bob's");
  expect(await kit.person.shown()).toHaveLength(1);

  // Another user logs in without a log-out.
  await kit.person.logIn(page, "u-cid");
  expect(await kit.person.shown()).toEqual([]);
  expect(await kit.browser.deliver(bobs.pushes[0] as Push)).toBe(false);
  expect((await statusOf(page)).device).toBe(device);
});

test("a device that was deleted is registered again", async () => {
  const page = await kit.person.subscribed();
  const { device } = await statusOf(page);
  await kit.person.logIn(page, "u-forgotten");
  await kit.project.call(`DELETE /devices/${device}`);
  await page.click("#news");
  const after = await reaches(page, { subscribed: true, topics: ["news"], user: "u-forgotten", pending: false });
  expect(after.device).not.toBe(device);
});
