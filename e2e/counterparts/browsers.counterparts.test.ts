import { eventually } from "@herald/testing";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Chromium, findChromium } from "../browser/chromium.ts";
import { openPlain } from "../browser/plain-chromium.ts";
import { logOnFailure, type System, startSystem } from "../harness/system.ts";
import { startFirefox } from "./firefox.ts";
import { firefox, orSkipped, progress } from "./programs.ts";

/** The example site in browsers that reach no push service: what a person reads there, and that nothing hangs. */

const firefoxProgram = await orSkipped("Firefox was not tested", firefox);
const chromiumProgram = await orSkipped("Chromium was not tested", () => findChromium(process.env, progress));
/** The kit gives a browser half a minute to answer. */
const waits = { timeoutMs: 90_000 };
const state = `({
  hint: document.getElementById("hint").textContent,
  badge: document.getElementById("badge").textContent,
  ...JSON.parse(document.getElementById("status").textContent || "{}"),
})`;
const asText = `JSON.stringify(${state})`;
const ready = 'document.body.dataset.ready !== undefined && document.getElementById("status").textContent !== ""';

const blocked = {
  hint: "You blocked notifications. Allow them in your browser's settings for this site.",
  badge: "Notifications are off",
  permission: "denied",
};
const noService = {
  hint: expect.stringMatching(/push service/i),
  badge: "Notifications are off",
  permission: "granted",
  subscribed: false,
  problem: { slug: expect.stringMatching(/^push-(service-unreachable|unavailable)$/) },
};
const unsupported = {
  hint: expect.stringContaining("This browser cannot receive notifications here."),
  badge: "Notifications are off",
  permission: "unsupported",
  subscribed: false,
};

let system: System;
beforeAll(async () => {
  system = await startSystem();
});
afterAll(() => system?.stop());
logOnFailure(() => system);

describe.runIf(firefoxProgram)("Firefox", () => {
  /** Nothing leaves this machine. */
  const nowhere = { "dom.push.serverURL": "ws://127.0.0.1:9/", "dom.push.connection.enabled": true };
  test.for([
    ["where the push service is out of reach", { "permissions.default.desktop-notification": 1 }, true, noService],
    ["that blocks notifications everywhere", { "permissions.default.desktop-notification": 2 }, false, blocked],
    ["whose push is switched off", { "dom.push.enabled": false }, false, unsupported],
  ] as const)("%s says so", async ([, prefs, clicks, expected]) => {
    const browser = await startFirefox(firefoxProgram as NonNullable<typeof firefoxProgram>, { ...nowhere, ...prefs });
    try {
      await browser.open(system.example.url);
      await eventually(async () => expect(await browser.value(ready)).toBe(true), waits);
      if (clicks) await browser.click("subscribe");
      await eventually(
        async () => expect(JSON.parse(String(await browser.value(asText)))).toMatchObject(expected),
        waits,
      );
      // The page says the same when it is loaded again, and asks for nothing by itself.
      await browser.open(system.example.url);
      await eventually(async () => expect(await browser.value(ready)).toBe(true), waits);
      expect(await browser.value('document.getElementById("badge").textContent')).toBe("Notifications are off");
    } finally {
      await browser.stop();
    }
  });
});

describe.runIf(chromiumProgram)("Chromium", () => {
  test.for([
    ["without a push service", "granted", noService],
    ["that blocks notifications", "denied", blocked],
  ] as const)("%s says so", async ([, setting, expected]) => {
    const { page, closed } = await openPlain(chromiumProgram as Chromium, system.example.url, setting);
    try {
      await page.goto(system.example.url);
      await page.waitForFunction(ready);
      if (setting === "granted") await page.click("#subscribe");
      await eventually(async () => expect(await page.evaluate(state)).toMatchObject(expected), waits);
      await page.reload();
      await page.waitForFunction(ready);
      expect(await page.textContent("#badge")).toBe("Notifications are off");
    } finally {
      await closed();
    }
  });
});
