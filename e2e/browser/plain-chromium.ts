import { mkdtemp } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { removeAtExit } from "@herald/provision";
import { type BrowserContext, chromium, type Page } from "playwright-core";
import type { Chromium } from "./chromium.ts";

/**
 * Opens a page of its own Chromium, without a stand-in for the push service, which a Chromium without Google's keys has not.
 * `closed` ends the browser.
 */
export const openPlain = async (
  { executable, env }: Chromium,
  origin: string,
  notifications: "granted" | "denied",
): Promise<{ page: Page; closed: () => Promise<void> }> => {
  const profile = await mkdtemp(join(tmpdir(), "herald-chromium-"));
  removeAtExit(profile);
  const args = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"];
  const options = { executablePath: executable, headless: true, args, env: { ...process.env, ...env } };
  const context: BrowserContext = await chromium.launchPersistentContext(profile, options);
  const page = await context.newPage();
  const devtools = await context.newCDPSession(page);
  const setting = { permission: { name: "notifications" }, setting: notifications, origin } as const;
  await devtools.send("Browser.setPermission", setting);
  return { page, closed: () => context.close() };
};
