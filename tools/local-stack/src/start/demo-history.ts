import { randomBytes } from "node:crypto";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { Readable } from "node:stream";
import { Herald, type NewNotification } from "@herald/client";
import type { LocalFile } from "./data-folder.ts";
import { callSimulators } from "./demo-project.ts";

/** Enough devices for lists with several pages and for charts with visible bars. */
export const demoDevices = 240;
const together = 16;
const settledWithinMs = 30_000;

/** Devices with these tokens have uninstalled their apps, as the simulators tell at the first push. */
const gonePrefixes = { ios: "dead", android: "demo-gone-" };

type Push = { token: string; status: number | null; payload: unknown };

const platforms = ["ios", "android", "web"] as const;
/** Without `news`, to which the printed commands send. */
const topics = ["concerts", "offers", "orders"];

const campaigns: readonly NewNotification[] = [
  {
    title: "Three concerts near you",
    body: "Tickets are on sale from noon.",
    link_to: "/events",
    targets: ["topic:concerts"],
  },
  {
    title: "20 % off this weekend",
    body: "On everything in your list.",
    link_to: "/offers",
    targets: ["topic:offers"],
  },
  { title: "Welcome to pro", body: "Three things to try first.", targets: ["metadata:plan=pro"] },
  { title: "We have moved", body: "Same shop, more room: Canal Street 12.", targets: ["all"] },
  { title: "Last hours of the sale", body: "It ends at midnight.", link_to: "/offers", targets: ["topic:offers"] },
  {
    title: "Doors open at 7",
    body: "Bring your ticket. It is under Orders.",
    link_to: "/events/17",
    targets: ["topic:concerts"],
  },
];

const orderNews = [
  { title: "Your order has shipped", body: "It arrives tomorrow before noon." },
  { title: "Your order arrives today", body: "Between 2 and 4 in the afternoon." },
  { title: "Ready for pickup", body: "Bring the code that is under Orders." },
  { title: "Your refund is on its way", body: "It takes two or three days." },
];

const userId = (index: number) => `u_${String(index % 90).padStart(3, "0")}`;

/** Again and again a few users get news of their orders. */
const orders = Array.from({ length: 12 }, (_, round) => ({
  ...orderNews[round % orderNews.length],
  link_to: "/orders/42",
  targets: Array.from(
    { length: 4 + ((round * 5) % 7) },
    (_, index) => `user:${userId(round * 11 + index * 7)}` as const,
  ),
}));

/** Finds the fields of a push anywhere in its payload, because each provider puts them elsewhere. */
const openOf = ({ payload }: Push): { id: string; token: string } | undefined => {
  const text = JSON.stringify(payload);
  const id = /"notification_id":"([^"]+)"/.exec(text)?.[1];
  const token = /"token":"(v2\.[^"]+)"/.exec(text)?.[1];
  return id && token ? { id, token } : undefined;
};

const inParallel = <Item>(items: Iterable<Item>, work: (item: Item) => Promise<void>): Promise<void> =>
  Readable.from(items).forEach(work, { concurrency: together });

/**
 * Fills the demo project once: devices, topics, users, and notifications with failures and opens, all sent now. It uses the public API as
 * an app and its backend do.
 */
export async function makeDemoHistory(
  dataDir: string,
  { gateway, project, simulators }: Pick<LocalFile, "gateway" | "project" | "simulators">,
  say: (line: string) => void,
): Promise<void> {
  const file = join(dataDir, "demo-history.json");
  const made = await readFile(file, "utf8").then(JSON.parse, () => undefined);
  if (made === project.id) return;
  say(`demo project: registering ${demoDevices} devices and sending them notifications, this once`);

  const herald = new Herald({ url: gateway, token: project.token });
  /** Reports an open as an app does. */
  const open = async (id: string, token: string) => {
    const response = await fetch(`${gateway}/api/v1/notifications/${id}/open`, {
      method: "PUT",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ project_id: project.id, token }),
    });
    if (!response.ok) throw new Error(`an open was answered ${response.status}: ${await response.text()}`);
  };
  const control = <Answer>(route: string, body?: unknown) => callSimulators<Answer>(simulators.control, route, body);
  const tokenOf = async (platform: (typeof platforms)[number], index: number) => {
    const prefix = (here: string, gone: string) => (index % 17 === 3 ? gone : here);
    const random = randomBytes(90);
    if (platform === "ios")
      return { token: `${prefix("a11ce", gonePrefixes.ios)}${random.toString("hex")}`.slice(0, 64) };
    if (platform === "android")
      return { token: `${prefix("demo-here-", gonePrefixes.android)}${random.toString("base64url")}` };
    type Subscription = { endpoint: string; keys: { p256dh: string; auth: string } };
    const { endpoint, keys } = await control<Subscription>("POST /webpush/subscriptions", {});
    return { token: endpoint, keys };
  };

  const devices = await Promise.all(
    Array.from({ length: demoDevices }, async (_, index) => {
      const platform = platforms[index % 5 < 2 ? 0 : index % 5 < 4 ? 1 : 2] ?? "ios";
      return {
        ...(await tokenOf(platform, index)),
        platform,
        topics: topics.filter((_topic, at) => index % (at + 2) === 0),
        user_id: index % 4 === 3 ? null : userId(index),
        metadata: { plan: index % 6 === 0 ? "pro" : "free" },
        identifiers: { current_locale: ["en", "de", "es", "fr"][index % 4], app_version: `3.${index % 5}.0` },
      };
    }),
  );
  await herald.devices.put(devices);

  const { rules } = await control<{ rules: { used?: number }[] }>("GET /script");
  const before = rules.map(({ used: _, ...rule }) => rule);
  await control("PUT /script", [
    { provider: "apns", tokenPrefix: gonePrefixes.ios, status: 410 },
    { provider: "fcm", tokenPrefix: gonePrefixes.android, status: 404 },
    ...before,
  ]);
  const send = async (notification: NewNotification) => {
    const sent = await herald.notifications.send(notification);
    // A notification that takes longer keeps its current status.
    await sent.completed({ signal: AbortSignal.timeout(settledWithinMs) }).catch(() => undefined);
  };

  await inParallel([...orders, ...campaigns], send);

  const { data: pushes } = await control<{ data: Push[] }>("GET /pushes");
  const received = pushes.flatMap((push) => (push.status === 200 || push.status === 201 ? (openOf(push) ?? []) : []));
  await inParallel(
    received.filter((_, at) => at % 7 < 2),
    ({ id, token }) => open(id, token),
  );
  await control("PUT /script", before);
  // The simulators then show only the user's own pushes.
  await control("DELETE /pushes");
  await writeFile(file, JSON.stringify(project.id));
}
