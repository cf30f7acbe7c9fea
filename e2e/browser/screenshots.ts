import { mkdir, readFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { Herald, HeraldAdmin } from "@herald/client";
import type { RunningHerald } from "@herald/local-stack";
import { eventually, operateBroker } from "@herald/testing";
import { chromium } from "playwright-core";
import { findChromium } from "./chromium.ts";

/** `npx node --conditions=@herald/source e2e/browser/screenshots.ts <folder>`: every page of the console of a running `npm start`, light and dark, wide and on a phone. */

const root = join(import.meta.dirname, "../..");
const dataDir = resolve(process.env.HERALD_DATA_DIR ?? join(root, ".herald"));
const folder = resolve(process.argv[2] ?? "screenshots");
const local = JSON.parse(await readFile(join(dataDir, "local.json"), "utf8")) as RunningHerald["local"];

const herald = new Herald({ url: local.gateway, token: local.project.token });
const admin = new HeraldAdmin({ url: local.gateway, token: local.adminToken });
/** A webhook without a receiver, so that its page shows failed attempts. */
const makeWebhook = async () => {
  const { webhook } = await herald.webhooks.create({ url: "http://127.0.0.1:9/herald", description: "Order service" });
  await herald.webhooks.ping(webhook.id);
  return webhook;
};

/** The notification with the most failures. */
const [notification] = (await herald.notifications.list({ sort: "-created_at" }).page()).data.toSorted(
  (one, other) => other.counts.failed - one.counts.failed,
);
const [delivery] = notification
  ? (await herald.notifications.deliveries(notification.id, { perPage: 1 }).page()).data
  : [];

const webhooks = (await herald.webhooks.list({ perPage: 1 }).page()).data;
const [webhook = await makeWebhook()] = webhooks;

/** A message that no version of Herald can read. */
const makeDeadLetter = async () => {
  const broker = await operateBroker(local.nats);
  await broker.publish(`push.cmd.v1.dispatch.send.${local.project.id}.x`, "no JSON");
  await broker.close();
  await eventually(async () => {
    if ((await admin.deadLetters.list().page()).data.length === 0) throw new Error("no dead letter yet");
  });
};
if ((await admin.deadLetters.list().page()).data.length === 0) await makeDeadLetter();

const pages: Record<string, string> = {
  overview: "",
  compose: "/compose",
  notifications: "/notifications",
  notification: `/notifications/${notification?.id}`,
  "delivery-trace": `/notifications/${notification?.id}/devices/${delivery?.device_id}`,
  trace: "/trace",
  devices: "/devices",
  device: `/devices/${delivery?.device_id}`,
  topics: "/topics",
  users: "/users",
  user: "/users/u_007",
  settings: "/settings",
  providers: "/settings/providers",
  tokens: "/settings/tokens",
  webhooks: "/settings/webhooks",
  webhook: `/settings/webhooks/${webhook.id}`,
  kinds: "/settings/kinds",
  identity: "/settings/identity",
  limits: "/settings/limits",
  operations: "/operations",
  letters: "/operations/letters",
  operators: "/operations/operators",
  audit: "/operations/audit",
};

const looks = [
  { name: "light", colorScheme: "light", width: 1280, height: 1020 },
  { name: "dark", colorScheme: "dark", width: 1280, height: 1020 },
  { name: "phone", colorScheme: "light", width: 360, height: 780 },
  { name: "phone-dark", colorScheme: "dark", width: 360, height: 780 },
] as const;

const { executable, env } = await findChromium(process.env, (line) => process.stderr.write(`${line}\n`));
const browser = await chromium.launch({
  executablePath: executable,
  env: { ...process.env, ...env },
  args: ["--no-sandbox"],
});
await mkdir(folder, { recursive: true });
for (const { name: look, colorScheme, width, height } of looks) {
  const context = await browser.newContext({
    colorScheme,
    viewport: { width, height },
    deviceScaleFactor: 2,
    reducedMotion: "reduce",
  });
  const page = await context.newPage();
  const { code } = await admin.sessions.createCode();
  await page.goto(`${local.gateway}/console/#code=${code}`);
  await page.getByRole("heading", { level: 1 }).waitFor();
  const draft = {
    title: "Doors open at 7",
    body: "Bring your ticket. It is under Orders.",
    link_to: "/events/17",
    targets: ["topic:concerts"],
  };
  await page.evaluate(
    ([id, text]) => localStorage.setItem(`herald-draft-${id}`, text as string),
    [local.project.id, JSON.stringify(draft)],
  );
  for (const [name, path] of Object.entries(pages)) {
    await page.goto(`${local.gateway}/console/p/${local.project.id}${path}`);
    await page.getByRole("heading", { level: 1 }).waitFor();
    await page.locator(".mantine-Skeleton-root").first().waitFor({ state: "detached" });
    await page.waitForTimeout(900); // dry run, plot
    await page.screenshot({ path: join(folder, `${name}-${look}.png`) });
  }
  await context.close();
}
await browser.close();
