import { randomUUID } from "node:crypto";
import type { ApnsSettings } from "@herald/contracts";
import type { Transport } from "@herald/http2-client";
import { isWord, parseObject, shown } from "../outcome.ts";
import type { ClientDeps, ProviderChannels } from "../provider-client.ts";

const hosts: Record<string, string> = {
  production: "https://api-manage-broadcast.push.apple.com:2196",
  sandbox: "https://api-manage-broadcast.sandbox.push.apple.com:2195",
};

/** Apple documents base64, and no length. The id becomes a header, and a part of records. */
const isId = (id: unknown): id is string => typeof id === "string" && /^[A-Za-z0-9+/_-]{8,64}={0,2}$/.test(id);

const requests = {
  list: { method: "GET", what: "all-channels", body: "" },
  delete: { method: "DELETE", what: "channels", body: "" },
  // Policy 1: devices that subscribe later get the last message.
  make: { what: "channels", body: JSON.stringify({ "message-storage-policy": 1, "push-type": "LiveActivity" }) },
} as const;

/** What Apple says of a channel that is gone. */
const isGone = (reason: unknown): boolean => reason === "ChannelNotRegistered" || reason === "BadChannelId";

/** A server that did not answer is not asked for so long: each request would wait for its timeout. */
const restMs = 10_000;

type ApnsChannelsDeps = Pick<ClientDeps<ApnsSettings>, "settings"> & {
  readonly apps: ReadonlySet<string>;
  readonly connect: (origin: string) => Transport;
  readonly authorization: () => string | Promise<string> | undefined;
};

/** Manages the broadcast channels of a project's apps ("Sending channel management requests to APNs"). */
export const createApnsChannels = ({ settings, apps, connect, authorization }: ApnsChannelsDeps) => {
  const transports: Partial<Record<string, Transport>> = {};
  /** By origin, in milliseconds of this process's own clock. */
  const restsUntil: Partial<Record<string, number>> = {};

  const ask: ProviderChannels["ask"] = async (kind, name, id) => {
    const [app = "", environment = ""] = name.split("/");
    if (!apps.has(app)) return { kind: "refused", reason: "app-not-configured" };
    const { what, body, ...method } = requests[kind];
    const origin = settings.endpoint ?? hosts[environment] ?? "";
    if (performance.now() < (restsUntil[origin] ?? 0)) return { kind: "not-done", reason: "did not answer lately" };
    transports[origin] ??= connect(origin);
    const token = await authorization();
    const headers = {
      "apns-request-id": randomUUID(),
      ...(id !== undefined && { "apns-channel-id": id }),
      ...(token !== undefined && { authorization: token }),
    };
    const answer = await transports[origin].send({ ...method, path: `/1/apps/${app}/${what}`, headers, body });
    if (answer.kind !== "answered") {
      const known = answer.kind === "unprocessed" ? "not-done" : "unknown";
      // A list may be slow because it is long.
      if (kind !== "list" || known === "not-done") restsUntil[origin] = performance.now() + restMs;
      return { kind: known, reason: shown(answer.reason) };
    }
    const { status } = answer;
    // An answer that is cut, because it is too long, does not parse.
    const { reason, channels } = parseObject(answer.body);
    const found = { list: channels, delete: [], make: [answer.headers["apns-channel-id"]] }[kind];
    if (status >= 200 && status < 300 && Array.isArray(found) && found.every(isId)) return { kind: "done", ids: found };
    if (kind === "delete" && isGone(reason)) return { kind: "done", ids: [] };
    // Every refusal of Apple has a reason; what has none may come from something between.
    if (status >= 400 && status < 500 && isWord(reason)) return { kind: "refused", reason };
    return { kind: "unknown", reason: `HTTP ${status}` };
  };

  return {
    channels: {
      nameOf: ({ app = settings.bundle_id, environment = settings.environment }) =>
        apps.has(app) ? `${app}/${environment}` : undefined,
      ask,
    } satisfies ProviderChannels,
    close: () => Promise.all(Object.values(transports).map((transport) => transport?.close())),
  };
};
