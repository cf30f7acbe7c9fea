import { eventually } from "@herald/testing";
import type { BrowserContext, Frame, Page } from "playwright-core";
import type { System } from "../harness/system.ts";
import type { Status } from "./browser-globals.ts";

/** A page of the example site that only has the kit. Its clock can be moved. */
export type BarePage = {
  readonly page: Page;
  /** Calls a method of the kit, such as `topics.add("news")`. */
  call(method: string): Promise<Status>;
  /**
   * The same where something does not answer: lets time pass until the call resolves. With `hanging`, which counts calls without an answer,
   * only after each of them.
   */
  callLater(method: string, hanging?: () => number | Promise<number>): Promise<Status>;
  /** Lets time pass until the newest status that `onChange` got is the expected one. */
  reachesLater(expected: (status: Status | undefined) => void): Promise<void>;
  /** All statuses that `onChange` got. */
  statuses(): Promise<Status[]>;
  /** Loads the page again, with a new kit. */
  reload(): Promise<void>;
};

type Globals = { readonly statuses: Status[] };

/** A document that the site really serves: Chromium lets no other one call an address of this machine. */
const path = "/config.json";

/** `prepare` runs before everything else, in each page that this tab loads. */
export const openBare = async (
  context: BrowserContext,
  system: System,
  prepare?: () => void,
  options: object = {},
): Promise<BarePage> => {
  const page = await context.newPage();
  await page.clock.install();
  if (prepare) await page.addInitScript(prepare);
  await page.goto(system.example.url + path);
  return bareOf(page, page.mainFrame(), system, options);
};

/** Longer than the kit waits for an answer of the browser. */
const stepMs = 11_000;
/** Requests to Herald need real time. */
const paceMs = 500;

/** Creates the kit in a frame of a page. */
export const bareOf = async (
  page: Page,
  frame: Frame,
  { gateway, example }: System,
  options: object = {},
): Promise<BarePage> => {
  const own = JSON.stringify({ gateway, project: example.project.id, ...options });
  const create = () =>
    frame.evaluate(`import("/herald.js").then(({ createHerald }) => {
      globalThis.statuses = [];
      globalThis.herald = createHerald({ ...${own}, onChange: (status) => void statuses.push(status) });
    })`);
  await create();
  const call = (method: string) => frame.evaluate(`herald.${method}`) as Promise<Status>;
  const statuses = () => frame.evaluate(() => (globalThis as unknown as Globals).statuses);
  /** Calls `found` until it throws no more. */
  const later = async <Value>(found: () => Value | Promise<Value>, hanging?: () => number | Promise<number>) => {
    let moved = 0;
    const started = Date.now();
    return eventually(async () => {
      const steps = hanging ? await hanging() : Math.floor((Date.now() - started) / paceMs);
      if (steps > moved) {
        moved = steps;
        await page.clock.fastForward(stepMs);
      }
      return found();
    });
  };
  return {
    page,
    call,
    callLater: async (method, hanging) => {
      let status: Status | undefined;
      const answered = call(method).then((one) => {
        status = one;
      });
      await later(() => {
        if (status === undefined) throw new Error(`${method} has not resolved`);
      }, hanging);
      await answered;
      return status as unknown as Status;
    },
    reachesLater: (expected) => later(async () => expected((await statuses()).at(-1))),
    statuses,
    reload: async () => {
      await page.reload();
      await create();
    },
  };
};
