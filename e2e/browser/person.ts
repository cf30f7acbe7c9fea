import type { ProjectId } from "@herald/contracts";
import type { Push } from "@herald/simulators";
import { eventually } from "@herald/testing";
import type { Page } from "playwright-core";
import { afterAll, beforeEach, expect } from "vitest";
import { type Content, type Project, projectClient } from "../harness/project.ts";
import { payloadOf } from "../harness/simulators.ts";
import { logOnFailure, type System } from "../harness/system.ts";
import { type Browser, startBrowser } from "./browser.ts";
import type { Shown, Status, WorkerScope } from "./browser-globals.ts";
import { test } from "./shared-system.ts";

export const statusOf = async (page: Page): Promise<Status> => JSON.parse((await page.textContent("#status")) || "{}");

/** Waits until the page shows the expected status. */
export const reaches = (page: Page, expected: Partial<Record<keyof Status, unknown>>): Promise<Status> =>
  eventually(async () => {
    const status = await statusOf(page);
    expect(status).toMatchObject(expected);
    return status;
  });

/** Actions of a user in the browser, and of the app's backend. */
const createPerson = (system: System, project: Project, browser: Browser) => {
  const allow = () => browser.setNotifications("granted");

  const subscribed = async (): Promise<Page> => {
    await allow();
    const page = await browser.open();
    await page.click("#subscribe");
    await reaches(page, { subscribed: true, pending: false });
    return page;
  };

  const logIn = async (page: Page, user: string): Promise<void> => {
    await page.fill("#user", user);
    await page.click("#login");
    await eventually(async () => {
      const status = await statusOf(page);
      // The token was issued in the same second as the previous user's: request a new one.
      if (status.problem?.slug === "user-token-used") await page.click("#login");
      expect(status).toMatchObject({ user, pending: false });
    });
  };

  /** Sends, waits until the notification is final, and returns the pushes at the push service. */
  const send = async (
    content: Partial<Content> & Pick<Content, "targets">,
  ): Promise<{ id: string; pushes: Push[] }> => {
    const { id } = await project.send({ title: "Hello", link_to: "/inbox", ...content });
    await project.final(id);
    const pushes = await system.simulators.pushes({ provider: "webpush", status: 201 });
    return { id, pushes: pushes.filter((push) => payloadOf(push).notification_id === id) };
  };

  const shown = async (): Promise<Shown[]> => {
    const worker = await browser.worker();
    return worker.evaluate(async () => {
      const { registration } = globalThis as unknown as WorkerScope;
      const all = await registration.getNotifications();
      return all.map(({ title, body, data }) => ({ title, body, data }));
    });
  };

  const isShown = async (title: string): Promise<void> => {
    await eventually(async () => expect(await browser.showed()).toContain(title));
    expect((await shown()).map((one) => one.title)).toContain(title);
  };

  /** Clicks the shown notification, or its button. Returns the pages that the worker asked the browser to open or focus. */
  const click = async (title: string, button?: string): Promise<string[]> => {
    const worker = await browser.worker();
    return worker.evaluate(
      async ([wanted, action]) => {
        const scope = globalThis as unknown as WorkerScope;
        const asked: string[] = [];
        // Browsers open and focus windows only after a real click, so both are replaced.
        scope.clients.openWindow = async (url: string) => void asked.push(`open ${url}`);
        scope.WindowClient.prototype.focus = async function focus() {
          asked.push(`focus ${this.url}`);
        };
        const all = await scope.registration.getNotifications();
        const found = all.find((one) => one.title === wanted);
        await scope.heraldWorker.click(found, action);
        return asked;
      },
      [title, button] as const,
    );
  };

  const opened = (id: string): Promise<void> =>
    eventually(async () => expect((await project.notification(id)).counts.opened).toBe(1));

  /** Dismisses the shown notification. */
  const dismiss = async (title: string): Promise<void> => {
    const worker = await browser.worker();
    await worker.evaluate(async (wanted) => {
      const { registration, heraldWorker } = globalThis as unknown as WorkerScope;
      await heraldWorker.dismiss((await registration.getNotifications()).find((one) => one.title === wanted));
    }, title);
  };

  return { allow, subscribed, logIn, send, shown, isShown, click, dismiss, opened };
};

type WebKit = {
  readonly system: System;
  readonly browser: Browser;
  readonly project: Project;
  readonly person: ReturnType<typeof createPerson>;
};

/**
 * Starts a user with a browser of the file's own, because tests move its clock, at the example site of the shared system. The browser is
 * reset before each test.
 */
export function useWebKit(): WebKit {
  const kit: { -readonly [Part in keyof WebKit]?: WebKit[Part] } = {};
  test.beforeAll(async ({ system }) => {
    kit.system = system;
    kit.browser = await startBrowser(system);
    kit.project = projectClient(system.gateway, system.example.project as { id: ProjectId; token: string });
    kit.person = createPerson(system, kit.project, kit.browser);
  });
  afterAll(() => kit.browser?.close());
  beforeEach(() => kit.browser?.reset());
  logOnFailure(() => kit.system);
  // `beforeAll` sets all fields before tests run.
  return kit as WebKit;
}
