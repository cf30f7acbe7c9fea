import type { ApnsSettings, Provider } from "@herald/contracts";
import { renderApns } from "@herald/payload";
import { createApnsClient } from "../providers/apns/client.ts";
import { createProviderTokens } from "../providers/apns/provider-tokens.ts";
import type { Transport, TransportOptions } from "../transport/transport.ts";
import type { ProviderClient } from "./provider-client.ts";

/** Makes a client for settings that were checked when they were put. */
export type ConnectProvider = (provider: Provider, settings: unknown) => ProviderClient;

export const createConnectProvider = ({
  createTransport,
  now,
}: {
  createTransport: (options: TransportOptions) => Transport;
  now: () => Date;
}): ConnectProvider => {
  const tokens = createProviderTokens(now);
  return (provider, settings) => {
    if (provider !== "apns") throw new Error(`${provider} cannot be sent with yet`);
    const client = createApnsClient({ settings: settings as ApnsSettings, tokens, createTransport, now });
    return {
      prepare: ({ projectId, notificationId, content, expiresAt }) => {
        const { pushType, priority, body } = renderApns(content, { projectId, notificationId });
        const collapseId = content.collapse_id ?? notificationId;
        // A time that is past tells Apple not to store it: no time to live is "now or never".
        const storedUntil = content.ttl === 0 ? new Date(0) : expiresAt;
        return ({ id, token, environment, locale }, openToken) =>
          client.send({
            deviceId: id,
            notificationId,
            token,
            environment,
            body: body(openToken, locale),
            pushType,
            priority,
            expiresAt: storedUntil,
            collapseId,
          });
      },
      close: () => client.close(),
    };
  };
};
