import { eventually } from "@herald/testing";
import { expect } from "vitest";
import type { BarePage } from "./bare-page.ts";
import { useWebKit } from "./person.ts";
import { test } from "./shared-system.ts";

/** The browser kit where the browser, another tab or a person never answers, in a real Chromium. */

const kit = useWebKit();

/** Lets calls of a method wait until `answer()`, after which they are made. Returns a function that counts them. */
const withholdAnswers = async ({ page }: BarePage, name: string) => {
  await page.evaluate((method) => {
    const scope = globalThis as unknown as Record<
      string,
      { prototype: Record<string, (...values: unknown[]) => unknown> }
    >;
    const [owner = "", key = ""] = method.split(".");
    const { prototype } = scope[owner] as { prototype: Record<string, (...values: unknown[]) => unknown> };
    const original = prototype[key];
    const { promise, resolve } = Promise.withResolvers<void>();
    const state = { silent: 0, answer: resolve };
    Object.assign(globalThis, { state });
    prototype[key] = async function (...values) {
      state.silent += 1;
      await promise;
      return original?.apply(this, values);
    };
  }, name);
  return () => page.evaluate("state.silent") as Promise<number>;
};

const subscribed = async () => {
  await kit.person.allow();
  const bare = await kit.browser.bare();
  const status = await bare.call("subscribe()");
  expect(status).toMatchObject({ subscribed: true, problem: null });
  return { ...bare, device: status.device };
};

test("a push service that cannot be reached: each call ends, also after a reload, and what comes late is used once", async () => {
  await kit.person.allow();
  const reach = kit.browser.pushService.hold();
  const bare = await kit.browser.bare();
  const problem = { slug: "push-service-unreachable", retry: true };
  const { held } = kit.browser.pushService;
  expect(await bare.callLater("subscribe()", held)).toMatchObject({
    permission: "granted",
    subscribed: false,
    problem,
  });
  // It is still being asked, so nothing waits for it again.
  expect(await bare.call('topics.add("news")')).toMatchObject({ pending: true, problem });
  await bare.reload();
  const waited = held();
  expect(await bare.callLater("start()", () => held() - waited)).toMatchObject({ subscribed: false, problem });
  expect(await bare.call("logout()")).toMatchObject({ subscribed: false, problem });
  reach();
  // The browser answers each call that waited, also that of the page before the reload.
  await eventually(() => expect(kit.browser.pushService.made()).toBe(held()));
  const made = kit.browser.pushService.made();
  const late = kit.browser.pushService.current()?.endpoint;
  await bare.reachesLater((status) =>
    expect(status).toMatchObject({ subscribed: true, topics: ["news"], pending: false, problem: null }),
  );
  expect(kit.browser.pushService.made()).toBe(made);
  expect(kit.browser.pushService.current()?.endpoint).toBe(late);
});

test("a subscription that comes after unsubscribe() registers nothing", async () => {
  await kit.person.allow();
  const reach = kit.browser.pushService.hold();
  const bare = await kit.browser.bare();
  await bare.callLater("subscribe()", kit.browser.pushService.held);
  expect(await bare.call("unsubscribe()")).toMatchObject({ subscribed: false, pending: false, problem: null });
  reach();
  await eventually(() => expect(kit.browser.pushService.made()).toBe(1));
  expect(await bare.call("start()")).toMatchObject({ subscribed: false, device: null, pending: false, problem: null });
});

test.for([
  ["PushManager.getSubscription", "push-service-unreachable"],
  ["ServiceWorkerContainer.getRegistration", "worker-unavailable"],
  ["ServiceWorkerContainer.register", "worker-unavailable"],
  ["LockManager.request", "busy"],
])("%s never answers: the call ends, another tab goes on, and the change is kept", async ([name = "", slug]) => {
  await kit.person.allow();
  const other = await kit.browser.bare();
  const bare = await kit.browser.bare();
  const silent = await withholdAnswers(bare, name);
  expect(await bare.callLater("subscribe()", slug === "busy" ? undefined : silent)).toMatchObject({
    subscribed: false,
    problem: { slug, retry: true },
  });
  expect(await other.call("subscribe()")).toMatchObject({ subscribed: true, problem: null });
  await bare.page.evaluate("state.answer()");
  await bare.reachesLater((status) => expect(status).toMatchObject({ subscribed: true, problem: null }));
  expect(kit.browser.pushService.made()).toBe(1);
});

test.for([
  "PushManager.getSubscription",
  "ServiceWorkerContainer.getRegistration",
  "ServiceWorkerRegistration.getNotifications",
])("%s never answers: a log-out and the end of the subscription reach Herald", async (name) => {
  const bare = await subscribed();
  const logIn = `fetch("/session", {
    method: "POST", headers: { "content-type": "application/json" }, body: '{ "user": "u-no-answer" }'
  }).then((response) => response.json()).then(({ user_token }) => herald.login(user_token))`;
  expect(await bare.page.evaluate(logIn)).toMatchObject({ user: "u-no-answer" });
  const silent = await withholdAnswers(bare, name);
  expect(await bare.callLater("logout()", silent)).toMatchObject({ user: null });
  const waited = await silent();
  expect(await bare.callLater("unsubscribe()", async () => (await silent()) - waited)).toMatchObject({ device: null });
  expect((await kit.project.call(`GET /devices/${bare.device}`)).status).toBe(404);
});

test("a browser that asks its push service for a known subscription, as Firefox does, and does not reach it", async () => {
  const bare = await subscribed();
  await bare.page.evaluate(`PushManager.prototype.getSubscription = async () => {
    throw new DOMException("Error retrieving push subscription.", "AbortError");
  }`);
  const problem = {
    slug: "push-service-unreachable",
    retry: true,
    message: "the browser does not reach its push service (Error retrieving push subscription.)",
  };
  expect(await bare.call('topics.add("news")')).toMatchObject({ pending: true, problem });
});

test("a worker that never becomes active", async () => {
  await kit.person.allow();
  const bare = await kit.browser.bare();
  await bare.page
    .context()
    .route("**/stuck-worker.js", (route) => route.fulfill({ contentType: "text/javascript", body: "" }));
  await bare.page.evaluate(
    `ServiceWorkerContainer.prototype.register = async () => ({ installing: { state: "installing" } })`,
  );
  expect(await bare.callLater("subscribe()")).toMatchObject({ problem: { slug: "worker-unavailable" } });
});

test("another tab keeps the lock: the call ends, and takes effect when that tab is closed", async () => {
  const { callLater, reachesLater } = await subscribed();
  const stuck = await kit.browser.bare();
  await stuck.page.evaluate(
    'new Promise((held) => void navigator.locks.request("herald", () => { held(); return new Promise(() => {}); }))',
  );
  expect(await callLater('topics.add("news")')).toMatchObject({ topics: [], problem: { slug: "busy", retry: true } });
  await stuck.page.close();
  await reachesLater((status) => expect(status).toMatchObject({ topics: ["news"], pending: false, problem: null }));
});

test("a storage that another page blocks: the call ends, and the change is stored when it answers", async () => {
  const { page, callLater, reachesLater } = await subscribed();
  await page.evaluate(`new Promise((blocked) => {
    const open = indexedDB.open("herald", 1);
    open.onsuccess = () => {
      globalThis.unblock = () => open.result.close();
      indexedDB.deleteDatabase("herald").onblocked = blocked;
    };
  })`);
  expect(await callLater("subscribe()")).toMatchObject({ problem: { slug: "storage-unavailable" } });
  await page.evaluate("unblock()");
  await reachesLater((status) => expect(status).toMatchObject({ subscribed: true, problem: null }));
});

test("a question for permission that stays open blocks nothing, and a late yes subscribes", async () => {
  await kit.browser.setNotifications("prompt");
  const bare = await kit.browser.bare(() => {
    const { Notification } = globalThis as unknown as { Notification: { requestPermission: unknown } };
    Notification.requestPermission = () =>
      new Promise((resolve) => {
        Object.assign(globalThis, { allow: () => resolve("granted") });
      });
  });
  const asked = bare.call("subscribe()");
  expect(await bare.call("start()")).toMatchObject({ permission: "default", problem: null });
  let isAnswered = false;
  void asked.then(() => {
    isAnswered = true;
  });
  await bare.reachesLater(() => expect(isAnswered).toBe(true));
  expect(await asked).toMatchObject({ permission: "default", subscribed: false });
  await kit.person.allow();
  await bare.page.evaluate("allow()");
  await bare.reachesLater((status) => expect(status).toMatchObject({ subscribed: true, problem: null }));
});

test("a report without an answer does not keep another tab waiting", async () => {
  const { page, call } = await subscribed();
  const other = await kit.browser.bare();
  const asked = Promise.withResolvers<void>();
  await page.route("**/api/v1/notifications/**", () => asked.resolve());
  await page.evaluate(`new Promise((stored) => {
    const opening = indexedDB.open("herald", 1);
    opening.onsuccess = () => {
      const report = { notification: "ntf_x", project: "prj_x", token: "x", verb: "open", at: Date.now() };
      const transaction = opening.result.transaction("reports", "readwrite");
      transaction.objectStore("reports").add(report);
      transaction.oncomplete = () => stored(opening.result.close());
    };
  })`);
  let isAnswered = false;
  const waiting = call("start()").then(
    () => {
      isAnswered = true;
    },
    () => undefined,
  );
  await asked.promise;
  expect(await other.call("start()")).toMatchObject({ subscribed: true, pending: false });
  expect(isAnswered).toBe(false);
  await page.close();
  await waiting;
});

test("an error of the app's own function rejects nothing and blocks nothing", async () => {
  await kit.person.allow();
  const bare = await kit.browser.bare();
  await bare.page.evaluate(`statuses.push = () => { throw new Error("of the app"); }`);
  expect(await bare.call("subscribe()")).toMatchObject({ subscribed: true, problem: null });
});

test("an endpoint of a browser without a push service: a state of its own, and no more requests", async () => {
  await kit.person.allow();
  kit.browser.pushService.setEndpoint("https://permanently-removed.invalid/fcm/send/x");
  const bare = await kit.browser.bare();
  const registered: string[] = [];
  bare.page.on("request", (request) => {
    if (request.url().includes("/identification")) registered.push(request.url());
  });
  const problem = { slug: "push-unavailable", retry: false };
  expect(await bare.call("subscribe()")).toMatchObject({ subscribed: false, pending: false, problem });
  await bare.reload();
  const requests: string[] = [];
  bare.page.on("request", (request) => requests.push(request.url()));
  expect(await bare.call("start()")).toMatchObject({ subscribed: false, pending: false, problem: null });
  expect([registered, requests]).toEqual([[], []]);
});

test("a device whose new subscription has no push service is deleted at Herald", async () => {
  const { page, device, reload, call } = await subscribed();
  kit.browser.pushService.setEndpoint("https://permanently-removed.invalid/fcm/send/y");
  await page.evaluate("heraldPushService('unsubscribe')");
  await reload();
  const problem = { slug: "push-unavailable" };
  expect(await call("start()")).toMatchObject({ subscribed: false, device: null, pending: false, problem });
  expect((await kit.project.call(`GET /devices/${device}`)).status).toBe(404);
});
