import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { findChromium, removeAtExit } from "@herald/local-stack";
import type { Push } from "@herald/simulators";
import { eventually } from "@herald/testing";
import { type BrowserContext, type CDPSession, chromium, type Page, type Worker } from "playwright-core";
import type { System } from "../harness/system.ts";
import type { WorkerScope } from "./browser-globals.ts";
import { createPushService, type PushService } from "./push-service.ts";

export type Browser = {
  readonly pushService: PushService;
  /** What a page complained about: uncaught exceptions, and errors in its console. */
  readonly errors: string[];
  /** The example site in a new tab, ready. */
  open(path?: string): Promise<Page>;
  /** A tab at another site, which the caller waits for. */
  visit(url: string): Promise<Page>;
  /** What the person chose in the browser's settings. */
  setNotifications(setting: "granted" | "denied", origin?: string): Promise<void>;
  /** The service worker, while it runs. */
  worker(): Promise<Worker>;
  /** Delivers what the push service has to the worker, as it does for a subscription that is still there. Says whether it was. */
  deliver(push: Push): Promise<boolean>;
  /** Delivers a text whatever the subscription: what was already on its way. */
  deliverText(text: string): Promise<void>;
  /** Titles that the worker has shown, in order. Chromium drops a notification that is asked for while it is being shown: wait for this. */
  showed(): Promise<string[]>;
  setOffline(offline: boolean): Promise<void>;
  /** As if this browser had never been at the site. */
  reset(): Promise<void>;
  /** Closes it, and starts it again with the same profile. */
  restart(): Promise<void>;
  close(): Promise<void>;
};

/** Without connections of its own to anywhere. */
const args = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];

/** A Chromium with a profile of its own that looks at the system's example site. Throws a sentence where there is none. */
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
    setNotifications: async (setting, origin = site) => {
      const permission = { name: "notifications" };
      await devtools.send("Browser.setPermission", { permission, setting, origin });
    },
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

/** The example site listens to clicks from here on. */
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
