import { newDeviceId, newNotificationId, newProjectId, type Recipient } from "@herald/contracts";
import { createHttp2Transport } from "@herald/http2-client";
import { type Simulators, type SimulatorsOptions, startSimulators } from "@herald/simulators";
import { afterEach } from "vitest";
import type { Message } from "../src/providers/provider-client.ts";
import { createWebPushClient, type WebPushClientDeps } from "../src/providers/webpush/client.ts";
import { type KeyRing, newRing, newVapidKeys } from "../src/providers/webpush/settings.ts";

export const keys = newVapidKeys();
const subject = "mailto:ops@example.com";

/** One notification for one subscription. */
export type Push = Message & Recipient;

/** Simulators and clients of a test file, which are closed after each test. */
export const createWebPushFixture = () => {
  const cleanups: Array<() => Promise<unknown>> = [];
  afterEach(async () => {
    for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
  });
  return {
    cleanups,
    simulate: async (options: SimulatorsOptions = {}): Promise<Simulators> => {
      const simulators = await startSimulators(options);
      cleanups.push(simulators.stop);
      return simulators;
    },
    connect: (
      elsewhere: { endpoint?: string; ca?: string; ring?: KeyRing; site?: string },
      over: Partial<WebPushClientDeps> = {},
    ) => {
      const client = createWebPushClient({
        settings: { subject, ring: newRing(keys, new Date()), ...elsewhere },
        createTransport: createHttp2Transport,
        now: () => new Date(),
        anyHost: false,
        ...over,
      });
      cleanups.push(client.close);
      return { ...client, send: (push: Push) => client.prepare(push)(push, "open") };
    },
  };
};

/** Connects every name to this machine, where a simulator may have the name of a real push service. */
export const createLocalTransport: WebPushClientDeps["createTransport"] = (options) =>
  createHttp2Transport({
    ...options,
    lookup: (_, { all }, done) =>
      all ? done(null, [{ address: "127.0.0.1", family: 4 }]) : done(null, "127.0.0.1", 4),
  });

export const at = ({ webpush, ca }: Simulators) => ({ endpoint: webpush.url, ca });

export function pushTo(simulators: Simulators, prefix = "", over: Partial<Push> = {}): Push {
  const subscription = simulators.webpush.subscribe({ applicationServerKey: keys.public_key, prefix });
  return {
    id: newDeviceId(new Date()),
    projectId: newProjectId(new Date()),
    notificationId: newNotificationId(new Date()),
    token: subscription.endpoint,
    tokenAt: 0,
    keys: subscription.keys,
    platform: "web",
    lane: "direct",
    content: { title: "Żółw 🐢", targets: ["all"], collapse_id: "order-42" },
    expiresAt: new Date(Date.now() + 3_600_000),
    ...over,
  };
}
