import { eventually } from "@herald/testing";
import type { Page } from "playwright-core";
import { expect } from "vitest";
import { bareOf } from "./bare-page.ts";
import { useWebKit } from "./person.ts";
import { test } from "./shared-system.ts";

/** `onChange` where a browser cannot or may not subscribe: the page learns it from the first `start()`. */

const kit = useWebKit();

const without: Record<string, () => void> = {
  "no PushManager, as in a tab of an iPhone": () => Reflect.deleteProperty(globalThis, "PushManager"),
  "no Notification": () => Reflect.deleteProperty(globalThis, "Notification"),
  "no service worker, as in a private window of Firefox": () =>
    Reflect.deleteProperty(Navigator.prototype, "serviceWorker"),
  "a service worker that is undefined": () =>
    Object.defineProperty(Navigator.prototype, "serviceWorker", { get: () => undefined }),
  "a browser of before BroadcastChannel": () => {
    for (const name of ["PushManager", "BroadcastChannel"]) Reflect.deleteProperty(globalThis, name);
  },
};

test.for(Object.keys(without))("%s: each method resolves to the status, and onChange gets it", async (name) => {
  const { call, statuses } = await kit.browser.bare(without[name]);
  const methods = ["start()", "subscribe()", 'topics.add("news")', 'login("no token")', "logout()", "unsubscribe()"];
  for (const [at, method] of methods.entries()) {
    const status = await call(method);
    expect(status).toMatchObject({ permission: "unsupported", subscribed: false, pending: false });
    expect((await statuses()).slice(at)).toEqual([status]);
  }
});

/** Serves the kit to every site. */
const serveEverywhere = (page: Page) =>
  page.route("**/herald.js", async (route) => {
    const body = await (await fetch(`${kit.system.example.url}/herald.js`)).text();
    await route.fulfill({ contentType: "text/javascript", body, headers: { "access-control-allow-origin": "*" } });
  });

test("a page without HTTPS", async () => {
  const { page } = await kit.browser.bare();
  await serveEverywhere(page);
  await page.route("http://plain.test/", (route) => route.fulfill({ contentType: "text/html", body: "" }));
  await page.goto("http://plain.test/");
  expect(await page.evaluate("isSecureContext")).toBe(false);
  const { call, statuses } = await bareOf(page, page.mainFrame(), kit.system);
  const status = await call("start()");
  expect(status).toMatchObject({ permission: "unsupported" });
  expect(await statuses()).toEqual([status]);
});

test("a sandboxed frame", async () => {
  const { page } = await kit.browser.bare();
  await serveEverywhere(page);
  await page.evaluate('document.body.innerHTML = "<iframe sandbox=allow-scripts src=/config.json></iframe>"');
  const frame = await eventually(() => page.frames()[1] ?? Promise.reject(new Error("no frame yet")));
  const { call, statuses } = await bareOf(page, frame, kit.system);
  const status = await call("start()");
  expect(status).toMatchObject({ permission: "unsupported" });
  expect(await statuses()).toEqual([status]);
});

test.for([
  ["denied", {}, null],
  ["granted", { worker: "/missing-worker.js" }, "worker-unavailable"],
] as const)("permission %s, options %j", async ([setting, options, slug]) => {
  await kit.browser.setNotifications(setting);
  const { call, statuses } = await kit.browser.bare(undefined, options);
  for (const [at, method] of ["start()", "subscribe()", "start()"].entries()) {
    const status = await call(method);
    const problem = method === "start()" && at === 0 ? null : slug && expect.objectContaining({ slug, retry: true });
    expect(status).toMatchObject({ permission: setting, subscribed: false, problem });
    // A retry of the kit may have added another one.
    const shown = await statuses();
    expect(shown.length).toBeGreaterThan(at);
    expect(shown.at(-1)).toEqual(status);
  }
});

test("a refused token and a call without a click are statuses, too", async () => {
  const { call, statuses } = await kit.browser.bare(() => {
    Object.defineProperty(Navigator.prototype, "userActivation", { get: () => ({ isActive: false }) });
  });
  await call('login("no token")');
  await call("subscribe()");
  expect((await statuses()).map(({ problem }) => problem?.slug)).toEqual(["user-token-invalid", "needs-click"]);
});

test("a storage that the browser refuses", async () => {
  const { call, statuses } = await kit.browser.bare(() => {
    const { IDBFactory } = globalThis as unknown as { IDBFactory: { prototype: { open: unknown } } };
    IDBFactory.prototype.open = () => {
      throw new Error("SecurityError");
    };
  });
  const status = await call("start()");
  expect(status).toMatchObject({ subscribed: false, problem: { slug: "failed" } });
  expect(await statuses()).toEqual([status]);
});

test("the example site says why there is nothing to click", async () => {
  const { page } = await kit.browser.bare(without["no PushManager, as in a tab of an iPhone"]);
  await page.goto(kit.system.example.url);
  await page.waitForFunction("document.body.dataset.ready !== undefined");
  expect(await page.textContent("#hint")).toContain("home screen");
  expect(await page.isVisible("#subscribe")).toBe(false);
});
