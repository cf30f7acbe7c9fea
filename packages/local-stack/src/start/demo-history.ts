import { randomBytes } from "node:crypto";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { Herald } from "@herald/client";
import type { LocalFile } from "./local-file.ts";

/** A few hundred devices, so that lists have pages and bars have lengths. */
export const demoDevices = 240;
const together = 8;
const settledWithinMs = 30_000;

/** The simulators take devices whose tokens begin like this for uninstalled. */
const gonePrefixes = { ios: "dead0", android: "demo-gone-" };

type Push = { token: string; status: number | null; payload: unknown };

const platforms = ["ios", "android", "web"] as const;
/** Not `news`, which the printed commands send to. */
const topics = ["concerts", "offers", "orders"];

const sends = [
  {
    title: "Doors open at 7",
    body: "Bring your ticket. It is under Orders.",
    link_to: "/events/17",
    targets: ["topic:concerts"],
  },
  {
    title: "20 % off this weekend",
    body: "On everything in your list.",
    link_to: "/offers",
    targets: ["topic:offers"],
  },
  {
    title: "Your order has shipped",
    body: "It arrives tomorrow before noon.",
    link_to: "/orders/42",
    targets: ["user:u_007"],
  },
  { title: "Welcome to pro", body: "Three things to try first.", targets: ["metadata:plan=pro"] },
  { title: "We have moved", body: "Same shop, more room: Canal Street 12.", targets: ["all"] },
];

/** The fields that a push has wherever its provider puts them. */
const openOf = ({ payload }: Push): { id: string; token: string } | undefined => {
  const text = JSON.stringify(payload);
  const id = /"notification_id":"([^"]+)"/.exec(text)?.[1];
  const token = /"token":"(v2\.[^"]+)"/.exec(text)?.[1];
  return id && token ? { id, token } : undefined;
};

const inParallel = async <Item>(items: readonly Item[], work: (item: Item, index: number) => Promise<void>) => {
  let next = 0;
  const run = async () => {
    for (let index = next++; index < items.length; index = next++) await work(items[index] as Item, index);
  };
  await Promise.all(Array.from({ length: together }, run));
};

/**
 * Gives the demo project something to look at, once for each project: devices, topics, users, notifications with failures, and opens. It
 * does through the public API what an app and its backend do.
 */
export async function makeDemoHistory(
  dataDir: string,
  { gateway, project, simulators }: LocalFile,
  say: (line: string) => void,
): Promise<void> {
  const file = join(dataDir, "demo-history.json");
  const made = await readFile(file, "utf8").then(JSON.parse, () => undefined);
  if (made === project.id) return;
  say(`demo project: registering ${demoDevices} devices, sending ${sends.length} notifications, this once`);

  const herald = new Herald({ url: gateway, token: project.token });
  /** As an app does. */
  const open = async (id: string, token: string) => {
    const response = await fetch(`${gateway}/api/v1/notifications/${id}/open`, {
      method: "PUT",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ project_id: project.id, token }),
    });
    if (!response.ok) throw new Error(`an open was answered ${response.status}: ${await response.text()}`);
  };
  const control = async (method: string, path: string, body?: unknown): Promise<unknown> => {
    const response = await fetch(`${simulators.control}${path}`, {
      method,
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
    return response.status === 204 ? undefined : await response.json();
  };
  const tokenOf = async (platform: (typeof platforms)[number], index: number) => {
    const isGone = index % 17 === 3;
    const random = randomBytes(90);
    if (platform === "ios")
      return { token: `${isGone ? gonePrefixes.ios : "a11ce"}${random.toString("hex")}`.slice(0, 64) };
    if (platform === "android")
      return { token: `${isGone ? gonePrefixes.android : "demo-here-"}${random.toString("base64url")}` };
    const { endpoint, keys } = (await control("POST", "/webpush/subscriptions", {})) as {
      endpoint: string;
      keys: { p256dh: string; auth: string };
    };
    return { token: endpoint, keys };
  };

  await inParallel(Array.from({ length: demoDevices }), async (_, index) => {
    const platform = platforms[index % 5 < 2 ? 0 : index % 5 < 4 ? 1 : 2] ?? "ios";
    await herald.devices.register({
      ...(await tokenOf(platform, index)),
      platform,
      topics: topics.filter((_topic, at) => index % (at + 2) === 0),
      user_id: index % 4 === 3 ? null : `u_${String(index % 90).padStart(3, "0")}`,
      metadata: { plan: index % 6 === 0 ? "pro" : "free" },
      identifiers: { current_locale: ["en", "de", "es", "fr"][index % 4], app_version: `3.${index % 5}.0` },
    });
  });

  // Some phones are gone, as always.
  const { rules } = (await control("GET", "/script")) as { rules: { used?: number }[] };
  const before = rules.map(({ used: _, ...rule }) => rule);
  await control("PUT", "/script", [
    { provider: "apns", tokenPrefix: gonePrefixes.ios, status: 410 },
    { provider: "fcm", tokenPrefix: gonePrefixes.android, status: 404 },
    ...before,
  ]);
  for (const notification of sends) {
    const sent = await herald.notifications.send(notification);
    // What takes longer is shown as it is.
    await sent.completed({ signal: AbortSignal.timeout(settledWithinMs) }).catch(() => undefined);
  }
  await control("PUT", "/script", before);

  const { data: pushes } = (await control("GET", "/pushes")) as { data: Push[] };
  const opens = pushes.flatMap((push) => (push.status !== null && push.status < 300 ? (openOf(push) ?? []) : []));
  await inParallel(opens, async ({ id, token }, index) => {
    if (index % 7 < 3) await open(id, token);
  });
  // The simulators show what is sent from now on.
  await control("DELETE", "/pushes");
  await writeFile(file, JSON.stringify(project.id));
}
