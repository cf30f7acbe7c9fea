import { randomBytes, randomUUID } from "node:crypto";
import type { IncomingHttpHeaders } from "node:http2";
import { z } from "zod";
import type { ProviderReply } from "../exchange.ts";
import { type Refusal, refuse } from "../script/apns-reasons.ts";
import type { SimulatedChannel } from "../types.ts";
import type { Instances } from "./instances.ts";

/** What Apple allows an app in each environment. */
const maxChannels = 10_000;
/** The largest payload of a broadcast. */
export const maxBroadcast = 5120;

/** Body of `POST /apns/channels`: channels that another sender makes for the app. */
export const ChannelOptions = z.strictObject({
  app: z.string().regex(/^[A-Za-z0-9.-]{1,255}$/, "a bundle id such as com.example.app"),
  count: z.number().int().min(1).max(maxChannels).default(1),
});

const managing = /^\/1\/apps\/([A-Za-z0-9.-]+)\/(channels|all-channels)$/;
const broadcasting = /^\/4\/broadcasts\/apps\/([A-Za-z0-9.-]+)$/;
const channelId = /^[A-Za-z0-9+/]{8,64}={0,2}$/;

type ChannelRequest = {
  readonly kind: "create" | "read" | "delete" | "list" | "broadcast";
  readonly app: string;
};

const kinds: Readonly<Record<string, ChannelRequest["kind"]>> = {
  "POST channels": "create",
  "GET channels": "read",
  "DELETE channels": "delete",
  "GET all-channels": "list",
};

/** A request to manage channels, or to broadcast to one. Undefined: it is none. `kind` undefined: the method is wrong. */
export const channelRequestOf = (method = "", path = ""): Partial<ChannelRequest> | undefined => {
  const [, broadcastApp] = broadcasting.exec(path) ?? [];
  if (broadcastApp !== undefined)
    return { app: broadcastApp, ...(method === "POST" && { kind: "broadcast" as const }) };
  const [, app, what] = managing.exec(path) ?? [];
  const kind = kinds[`${method} ${what}`];
  return app === undefined ? undefined : { app, ...(kind && { kind }) };
};

/** The script's name of a request, which a `tokenPrefix` may match: `channels/<app>`, `broadcasts/<app>`. */
export const scriptNameOf = ({ kind, app }: Partial<ChannelRequest>): string =>
  `${kind === "broadcast" ? "broadcasts" : "channels"}/${app}`;

type Received = { readonly headers: IncomingHttpHeaders; readonly payload: string; readonly size: number };

const isJson = (payload: string, accepts: (value: Record<string, unknown>) => boolean): boolean => {
  try {
    return accepts(JSON.parse(payload) as Record<string, unknown>);
  } catch {
    return false;
  }
};

/**
 * The channels of apps ("Sending channel management requests to APNs", "Sending broadcast push notification requests to APNs"). Each keeps
 * its last message for devices that subscribe later.
 */
export function createChannels(instances: Pick<Instances, "broadcast">) {
  const all = new Map<string, SimulatedChannel & { last?: unknown }>();
  const ofApp = (app: string) => [...all.values()].filter((channel) => channel.app === app);
  const idOf = (headers: IncomingHttpHeaders) => headers["apns-channel-id"]?.toString();

  const create = (app: string, storesLast: boolean): SimulatedChannel => {
    const channel = { id: randomBytes(16).toString("base64"), app, storesLast };
    all.set(channel.id, channel);
    return channel;
  };

  const checkNew = (app: string, payload: string): Refusal | undefined => {
    if (!isJson(payload, (body) => body["push-type"] === "LiveActivity"))
      return refuse("InvalidPushType", "body: push-type is not LiveActivity");
    if (!isJson(payload, (body) => body["message-storage-policy"] === 0 || body["message-storage-policy"] === 1))
      return refuse("PayloadEmpty", "body: message-storage-policy is not 0 or 1");
    return ofApp(app).length < maxChannels
      ? undefined
      : refuse("CannotCreateChannelConfig", `the app has ${maxChannels} channels, the most that Apple allows`);
  };

  const checkBroadcast = ({ headers, payload, size }: Received): Refusal | undefined => {
    if (headers["apns-push-type"] === undefined) return refuse("MissingPushType", "apns-push-type: missing");
    if (headers["apns-push-type"] !== "liveactivity")
      return refuse("InvalidPushType", "apns-push-type: not liveactivity");
    if (!["10", "5"].includes(String(headers["apns-priority"])))
      return refuse("BadPriority", "apns-priority: not 10 or 5");
    if (!/^\d{1,10}$/.test(String(headers["apns-expiration"])))
      return refuse("BadExpirationDate", "apns-expiration: not 0 or a time in seconds since 1970");
    if (size > maxBroadcast) return refuse("PayloadTooLarge", `payload: ${size} bytes, at most ${maxBroadcast}`);
    return isJson(payload, ({ aps }) => typeof aps === "object" && aps !== null)
      ? undefined
      : refuse("PayloadEmpty", "payload: no aps object");
  };

  return {
    check({ kind, app = "" }: Partial<ChannelRequest>, received: Received): Refusal | undefined {
      if (kind === undefined) return refuse("MethodNotAllowed", ":method: not one of this path");
      if (kind === "list") return undefined;
      if (kind === "create") return checkNew(app, received.payload);
      const id = idOf(received.headers);
      if (id === undefined) return refuse("MissingChannelId", "apns-channel-id: missing");
      if (!channelId.test(id)) return refuse("BadChannelId", "apns-channel-id: not base64");
      if (all.get(id)?.app !== app)
        return refuse("ChannelNotRegistered", "apns-channel-id: the app has no such channel");
      return kind === "broadcast" ? checkBroadcast(received) : undefined;
    },

    /** Performs a valid request. */
    perform({ kind, app = "" }: Partial<ChannelRequest>, { headers, payload }: Received): ProviderReply {
      const id = idOf(headers) ?? "";
      const common = { "apns-request-id": headers["apns-request-id"]?.toString() ?? randomUUID().toUpperCase() };
      const channel = all.get(id);
      switch (kind) {
        case "create": {
          const made = create(
            app,
            isJson(payload, (body) => body["message-storage-policy"] === 1),
          );
          return { status: 201, headers: { ...common, "apns-channel-id": made.id } };
        }
        case "delete":
          all.delete(id);
          return { status: 204, headers: common };
        case "list":
          return { status: 200, headers: common, body: JSON.stringify({ channels: ofApp(app).map((one) => one.id) }) };
        case "broadcast":
          if (channel?.storesLast) channel.last = JSON.parse(payload);
          instances.broadcast(id, JSON.parse(payload));
          return { status: 200, headers: { ...common, "apns-unique-id": randomUUID() } };
        default: {
          const policy = channel?.storesLast ? 1 : 0;
          const body = JSON.stringify({ "message-storage-policy": policy, "push-type": "LiveActivity" });
          return { status: 200, headers: common, body };
        }
      }
    },

    /** Whether the app has it, and the message that it keeps. */
    find: (app: string, id: string): { readonly last?: unknown } | undefined => {
      const channel = all.get(id);
      return channel?.app === app ? channel : undefined;
    },
    /** Another sender makes channels. */
    add: ({ app, count }: z.infer<typeof ChannelOptions>): SimulatedChannel[] =>
      Array.from({ length: count }, () => create(app, true)),
    list: (): SimulatedChannel[] => [...all.values()].map(({ id, app, storesLast }) => ({ id, app, storesLast })),
    clear: () => all.clear(),
  };
}
