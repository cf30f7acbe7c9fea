import { findChromium } from "@herald/local-stack";
import { type BrowserContext, chromium, type Page } from "playwright-core";
import { expect } from "vitest";
import type { System } from "../harness/system.ts";

export type ConsolePage = Page & {
  /** What a page complained about: exceptions, and refusals of the content security policy. */
  readonly complaints: string[];
  /** Requests to anything but the gateway. */
  readonly foreign: string[];
};

export type ConsoleBrowser = {
  /** A browser without a past, at the console's sign-in. */
  open(path?: string, options?: { dark?: boolean; width?: number; height?: number }): Promise<ConsolePage>;
  /** The same, signed in by a code in the link's fragment. */
  signedIn(path?: string, options?: { dark?: boolean; width?: number; height?: number }): Promise<ConsolePage>;
  close(): Promise<void>;
};

/** A Chromium that looks at the console of a system. */
export async function startConsoleBrowser(system: System): Promise<ConsoleBrowser> {
  const { executable, env } = await findChromium(process.env, (line) => process.stderr.write(`${line}\n`));
  const browser = await chromium.launch({
    executablePath: executable,
    env: { ...process.env, ...env },
    args: ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"],
  });
  const contexts: BrowserContext[] = [];

  const open: ConsoleBrowser["open"] = async (path = "/", { dark = false, width = 1280, height = 900 } = {}) => {
    const context = await browser.newContext({
      colorScheme: dark ? "dark" : "light",
      viewport: { width, height },
      reducedMotion: "reduce",
    });
    contexts.push(context);
    const page = await context.newPage();
    page.setDefaultTimeout(20_000);
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
    close: () => browser.close(),
  };
}

/** No page may ever do any of these. */
export const expectCalm = (page: ConsolePage): void => {
  expect(page.complaints).toEqual([]);
  expect(page.foreign).toEqual([]);
};
