import type { Push } from "@herald/simulators";
import { eventually } from "@herald/testing";
import type { Page } from "playwright-core";
import { expect } from "vitest";
import type { Content, Project } from "../harness/project.ts";
import { payloadOf } from "../harness/simulators.ts";
import type { System } from "../harness/system.ts";
import type { Browser } from "./browser.ts";
import type { Shown, WorkerScope } from "./browser-globals.ts";

/** What the example site says of itself. */
export type Status = {
  permission: string;
  subscribed: boolean;
  device: string;
  user: string | null;
  topics: string[];
  pending: boolean;
  problem: { slug: string } | null;
};

export const statusOf = async (page: Page): Promise<Status> => JSON.parse((await page.textContent("#status")) || "{}");

/** Waits until the page shows it. */
export const reaches = (page: Page, expected: Partial<Record<keyof Status, unknown>>): Promise<Status> =>
  eventually(async () => {
    const status = await statusOf(page);
    expect(status).toMatchObject(expected);
    return status;
  });

/** What a person does in the browser, and what the app's backend does meanwhile. */
export const createPerson = (system: System, project: Project, browser: Browser) => {
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
      // Made in the same second as that of the last user: a fresh one is asked for.
      if (status.problem?.slug === "user-token-used") await page.click("#login");
      expect(status).toMatchObject({ user, pending: false });
    });
  };

  /** Sends; what arrived at the push service, by the time that the notification is final. */
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

  /** Clicks the shown notification, and answers what the browser was asked to open or to bring to the front. */
  const click = async (title: string): Promise<string[]> => {
    const worker = await browser.worker();
    return worker.evaluate(async (wanted) => {
      const scope = globalThis as unknown as WorkerScope;
      const asked: string[] = [];
      // A browser opens and focuses for a person's click alone.
      scope.clients.openWindow = async (url: string) => void asked.push(`open ${url}`);
      scope.WindowClient.prototype.focus = async function focus() {
        asked.push(`focus ${this.url}`);
      };
      const all = await scope.registration.getNotifications();
      await scope.heraldWorker.click(all.find((one) => one.title === wanted));
      return asked;
    }, title);
  };

  const opened = (id: string): Promise<void> =>
    eventually(async () => expect((await project.notification(id)).counts.opened).toBe(1));

  return { allow, subscribed, logIn, send, shown, isShown, click, opened };
};
