import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { removeAtExit } from "@herald/provision";
import type { Push } from "@herald/simulators";
import { eventually } from "@herald/testing";
import { type BrowserContext, type CDPSession, chromium, type Page, type Worker } from "playwright-core";
import type { System } from "../harness/system.ts";
import { type BarePage, openBare } from "./bare-page.ts";
import type { WorkerScope } from "./browser-globals.ts";
import { findChromium } from "./chromium.ts";
import { createPushService, type PushService } from "./push-service.ts";

export type Browser = {
  readonly pushService: PushService;
  /** Uncaught exceptions of pages, and errors in their consoles. */
  readonly errors: string[];
  /** Opens the example site in a new tab, and waits until it is ready. */
  open(path?: string): Promise<Page>;
  /** Opens another site in a new tab. The caller waits until it is ready. */
  visit(url: string): Promise<Page>;
  /** Opens a page that only has the kit; `prepare` runs in it before everything else, `options` are the kit's. */
  bare(prepare?: () => void, options?: object): Promise<BarePage>;
  /** Sets the permission for notifications, as in the browser's settings. */
  setNotifications(setting: "granted" | "denied" | "prompt", origin?: string): Promise<void>;
  /** The service worker, while it runs. */
  worker(): Promise<Worker>;
  /** Delivers a push to the worker if its subscription still exists. Resolves to whether it did. */
  deliver(push: Push): Promise<boolean>;
  /** Delivers a text without a check of the subscription, like a push that was already in transit. */
  deliverText(text: string): Promise<void>;
  /** Titles that the worker has shown, in order. Wait for this: Chromium may not list a notification that it is still showing. */
  showed(): Promise<string[]>;
  setOffline(offline: boolean): Promise<void>;
  /** Deletes all data of the site. */
  reset(): Promise<void>;
  /** Restarts the browser with the same profile. */
  restart(): Promise<void>;
  close(): Promise<void>;
};

/** Arguments that stop connections of Chromium itself. */
const args = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];

/** Starts a Chromium with its own profile for the system's example site. Throws a readable error if none is found. */
export async function startBrowser(system: System): Promise<Browser> {
  const site = system.example.url;
  const { executable, env } = await findChromium(process.env, (line) => process.stderr.write(`${line}\n`));
  const profile = await mkdtemp(join(tmpdir(), "herald-browser-"));
  removeAtExit(profile);
  const pushService = createPushService(system);
  const errors: string[] = [];
  let context: BrowserContext;
  let devtools: CDPSession;
  let registrationId = "";

  const launch = async () => {
    context = await chromium.launchPersistentContext(profile, {
      executablePath: executable,
      headless: true,
      args,
      env: { ...process.env, ...env },
    });
    context.on("weberror", (error) => errors.push(String(error.error())));
    await pushService.standIn(context);
    devtools = await context.newCDPSession(context.pages()[0] ?? (await context.newPage()));
    devtools.on("ServiceWorker.workerRegistrationUpdated", ({ registrations }) => {
      for (const one of registrations) if (!one.isDeleted) registrationId = one.registrationId;
    });
    await devtools.send("ServiceWorker.enable");
  };
  const worker = () => eventually(() => context.serviceWorkers()[0] ?? Promise.reject(new Error("no worker runs")));
  const deliverText = async (data: string) => {
    await (await worker()).evaluate(noteWhatIsShown);
    await eventually(() => {
      if (registrationId === "") throw new Error("no worker is registered");
    });
    await devtools.send("ServiceWorker.deliverPushMessage", { origin: site, registrationId, data });
  };

  const setNotifications: Browser["setNotifications"] = async (setting, origin = site) => {
    await devtools.send("Browser.setPermission", { permission: { name: "notifications" }, setting, origin });
  };

  await launch();
  return {
    pushService,
    errors,
    open: async (path = "/") => {
      const page = await context.newPage();
      page.on("console", (message) => {
        if (message.type() === "error") errors.push(message.text());
      });
      await page.goto(site + path);
      await ready(page);
      return page;
    },
    visit: async (url) => {
      const page = await context.newPage();
      await page.goto(url);
      return page;
    },
    bare: (prepare, options) => openBare(context, system, prepare, options),
    setNotifications,
    worker,
    deliver: async ({ token, payload }) => {
      if (pushService.current()?.endpoint !== token) return false;
      await deliverText(JSON.stringify(payload));
      return true;
    },
    deliverText,
    showed: async () => (await worker()).evaluate("globalThis.showed ?? []"),
    setOffline: async (offline) => {
      pushService.setOffline(offline);
      await context.setOffline(offline);
    },
    reset: async () => {
      for (const page of context.pages().slice(1)) await page.close();
      await devtools.send("ServiceWorker.unregister", { scopeURL: `${site}/` });
      await devtools.send("ServiceWorker.stopAllWorkers");
      await devtools.send("Storage.clearDataForOrigin", { origin: site, storageTypes: "all" });
      await devtools.send("Browser.resetPermissions");
      // What the browser itself denied in an earlier test stays in the profile.
      await setNotifications("prompt");
      await eventually(() => {
        if (context.serviceWorkers().length > 0) throw new Error("the worker still runs");
      });
      registrationId = "";
      pushService.forget();
      errors.length = 0;
    },
    restart: async () => {
      await context.close();
      registrationId = "";
      await launch();
    },
    close: async () => {
      await context.close();
      await rm(profile, { recursive: true, force: true });
    },
  };
}

/** Waits until the example site handles clicks. */
export const ready = async (page: Page): Promise<void> => {
  await page.waitForFunction("document.body.dataset.ready !== undefined");
};

/** Runs in the worker. */
function noteWhatIsShown(): void {
  const scope = globalThis as unknown as WorkerScope;
  if (scope.showed) return;
  const showed: string[] = [];
  scope.showed = showed;
  const { prototype } = scope.ServiceWorkerRegistration;
  const { showNotification } = prototype;
  prototype.showNotification = async function show(title: string, options: unknown) {
    await showNotification.call(this, title, options);
    showed.push(title);
  };
}
