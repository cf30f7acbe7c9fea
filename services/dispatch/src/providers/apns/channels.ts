import { randomUUID } from "node:crypto";
import type { ApnsEnvironment, ApnsSettings } from "@herald/contracts";
import type { Transport } from "@herald/http2-client";
import { isWord, parseObject, shown } from "../outcome.ts";
import type { ChannelAnswer, ClientDeps, ProviderChannels } from "../provider-client.ts";

const hosts: Record<ApnsEnvironment, string> = {
  production: "https://api-manage-broadcast.push.apple.com:2196",
  sandbox: "https://api-manage-broadcast.sandbox.push.apple.com:2195",
};

/** Apple documents base64, and no length. The id becomes a header, and a part of records. */
const isId = (id: unknown): id is string => typeof id === "string" && /^[A-Za-z0-9+/_-]{8,64}={0,2}$/.test(id);

/** Devices that subscribe later get the last message. */
const newChannel = JSON.stringify({ "message-storage-policy": 1, "push-type": "LiveActivity" });

type ApnsChannelsDeps = Pick<ClientDeps<ApnsSettings>, "settings" | "createTransport"> & {
  readonly apps: ReadonlySet<string>;
  readonly authorization: () => string | Promise<string> | undefined;
};

/** Manages the broadcast channels of a project's apps ("Sending channel management requests to APNs"). */
export const createApnsChannels = ({ settings, createTransport, apps, authorization }: ApnsChannelsDeps) => {
  const { bundle_id, endpoint, ca } = settings;
  const certificate = "certificate" in settings ? settings : undefined;
  const transports: Partial<Record<string, Transport>> = {};

  const transportTo = (environment: ApnsEnvironment): Transport => {
    const origin = endpoint ?? hosts[environment];
    transports[origin] ??= createTransport({
      ...{ origin, ca, certificate: certificate?.certificate, privateKey: certificate?.private_key },
    });
    return transports[origin];
  };

  const ask: ProviderChannels["ask"] = async (what, name, id): Promise<ChannelAnswer> => {
    const [app = "", environment] = name.split("/");
    if (!apps.has(app)) return { kind: "refused", reason: "app-not-configured" };
    const token = await authorization();
    const answer = await transportTo(environment as ApnsEnvironment).send({
      ...(what !== "make" && { method: what === "list" ? "GET" : "DELETE" }),
      path: `/1/apps/${app}/${what === "list" ? "all-channels" : "channels"}`,
      headers: {
        "apns-request-id": randomUUID(),
        ...(id !== undefined && { "apns-channel-id": id }),
        ...(token !== undefined && { authorization: token }),
      },
      body: what === "make" ? newChannel : "",
    });
    if (answer.kind !== "answered")
      return { kind: answer.kind === "unprocessed" ? "not-done" : "unknown", reason: shown(answer.reason) };
    const { status, headers } = answer;
    const { reason, channels } = parseObject(answer.body);
    if (what === "make" && status === 201 && isId(headers["apns-channel-id"]))
      return { kind: "done", ids: [headers["apns-channel-id"]] };
    if (what === "delete" && status === 204) return { kind: "done", ids: [] };
    // An answer that is cut, because it is too long, does not parse.
    if (what === "list" && status === 200 && Array.isArray(channels) && channels.every(isId))
      return { kind: "done", ids: channels };
    if (status === 429) return { kind: "not-done", reason: "TooManyRequests" };
    // Every refusal of Apple has a reason; what has none may come from something between.
    return status >= 400 && status < 500 && isWord(reason)
      ? { kind: "refused", reason }
      : { kind: "unknown", reason: `HTTP ${status}` };
  };

  return {
    channels: {
      nameOf: ({ app = bundle_id, environment = settings.environment }) =>
        apps.has(app) ? `${app}/${environment}` : undefined,
      ask,
    } satisfies ProviderChannels,
    close: () => Promise.all(Object.values(transports).map((transport) => transport?.close())),
  };
};
