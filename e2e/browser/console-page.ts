import { chromium, type Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, expect } from "vitest";
import { logOnFailure, type System, type SystemOptions, startSystem } from "../harness/system.ts";
import { findChromium } from "./chromium.ts";

export type ConsolePage = Page & {
  /** Exceptions of the page, and violations of its content security policy. */
  readonly complaints: string[];
  /** Requests to other hosts than the gateway. */
  readonly foreign: string[];
};

export type ConsoleBrowser = {
  /** Opens the console's sign-in in a fresh browser context. */
  open(path?: string, options?: { dark?: boolean; width?: number; height?: number }): Promise<ConsolePage>;
  /** Like `open`, but signs in with a code in the link's fragment. */
  signedIn(path?: string, options?: { dark?: boolean; width?: number; height?: number }): Promise<ConsolePage>;
  /** Opens any other page, such as the simulators' page. */
  visit(url: string): Promise<Page>;
  /** Closes all pages: an open one reads from Herald every few seconds. */
  closePages(): Promise<void>;
  close(): Promise<void>;
};

/** Starts a Chromium for the console of a system. */
export async function startConsoleBrowser(system: System): Promise<ConsoleBrowser> {
  const { executable, env } = await findChromium(process.env, (line) => process.stderr.write(`${line}\n`));
  const browser = await chromium.launch({
    executablePath: executable,
    env: { ...process.env, ...env },
    args: ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"],
  });

  const open: ConsoleBrowser["open"] = async (path = "/", { dark = false, width = 1280, height = 900 } = {}) => {
    const context = await browser.newContext({
      colorScheme: dark ? "dark" : "light",
      viewport: { width, height },
      reducedMotion: "reduce",
    });
    const page = await context.newPage();
    page.setDefaultTimeout(45_000); // three times as long as the longest pause between two reads of a page
    const complaints: string[] = [];
    const foreign: string[] = [];
    page.on("pageerror", (error) => complaints.push(String(error)));
    page.on("dialog", (dialog) => {
      complaints.push(`a dialog: ${dialog.message()}`);
      void dialog.dismiss();
    });
    page.on("console", (message) => {
      if (/Content Security Policy|violates/i.test(message.text())) complaints.push(message.text());
    });
    page.on("request", (request) => {
      const { protocol, origin } = new URL(request.url());
      if (protocol !== "data:" && protocol !== "blob:" && origin !== new URL(system.gateway).origin)
        foreign.push(request.url());
    });
    await page.goto(`${system.gateway}/console${path}`);
    return Object.assign(page, { complaints, foreign });
  };

  return {
    open,
    signedIn: async (path = "/", options) => {
      const { body } = await system.admin("POST /sessions/codes");
      const page = await open(`${path}#code=${body.data.code}`, options);
      await page
        .getByRole("navigation", { name: "Main" })
        .or(page.getByText("Create your first project"))
        .first()
        .waitFor({ state: "attached" });
      return page;
    },
    visit: async (url) => {
      const page = await (await browser.newContext()).newPage();
      await page.goto(url);
      return page;
    },
    closePages: async () => {
      for (const context of browser.contexts()) await context.close();
    },
    close: () => browser.close(),
  };
}

/** Starts a system with the console and a browser for a test file that cannot share them. */
export function useConsole(options: SystemOptions): { readonly system: System; readonly browser: ConsoleBrowser } {
  let system: System | undefined;
  let browser: ConsoleBrowser | undefined;
  const started = <Part>(part: Part | undefined): Part => {
    if (part === undefined) throw new Error("not started yet");
    return part;
  };
  beforeAll(async () => {
    system = await startSystem({ console: true, ...options });
    browser = await startConsoleBrowser(system);
  });
  afterAll(async () => {
    await browser?.close();
    await system?.stop();
  });
  afterEach(() => browser?.closePages());
  logOnFailure(() => system);
  return {
    get system() {
      return started(system);
    },
    get browser() {
      return started(browser);
    },
  };
}

/** Opens a page of a project in the same tab, and waits until it has loaded. */
export const goTo = async (page: ConsolePage, address: string): Promise<void> => {
  await page.goto(address);
  await page.getByRole("heading", { level: 1 }).waitFor();
  await page.locator(".mantine-Skeleton-root").first().waitFor({ state: "detached" });
};

/** Waits for sentences of the API. The page formats their times and names. */
export const showsSentences = async (page: Page, sentences: readonly string[]): Promise<void> => {
  for (const sentence of sentences) {
    const shown = sentence.replaceAll("`", "").replaceAll(/[.*+?^${}()|[\]\\]/g, "\\$&");
    await page
      .getByText(new RegExp(shown.replaceAll(/\d{4}-\d\d-\d\dT[\d:\\.]+Z/g, ".+")))
      .first()
      .waitFor();
  }
};

/** Marks the document, to detect a reload. */
export const mark = (page: ConsolePage): Promise<unknown> => page.evaluate("window.sameDocument = true");
export const isMarked = (page: ConsolePage): Promise<unknown> => page.evaluate("window.sameDocument === true");

/** Expects no exceptions, policy violations or foreign requests. */
export const expectCalm = (page: ConsolePage): void => {
  expect(page.complaints).toEqual([]);
  expect(page.foreign).toEqual([]);
};
