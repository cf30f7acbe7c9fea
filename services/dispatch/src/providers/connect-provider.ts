import type { ApnsSettings, FcmSettings, Provider } from "@herald/contracts";
import { createApnsClient, createTokenCache } from "./apns/client.ts";
import { createFcmClient } from "./fcm/client.ts";
import type { ClientDeps, ProviderClient } from "./provider-client.ts";
import { createWebPushClient } from "./webpush/client.ts";
import type { StoredWebPushSettings } from "./webpush/settings.ts";

/** Creates a client for settings. They were checked when they were put. */
export type ConnectProvider = (provider: Provider, settings: unknown) => ProviderClient;

type Deps = Pick<ClientDeps<unknown>, "createTransport" | "now"> & {
  /** For push services, some of which are old. */
  readonly createWebPushTransport: ClientDeps<unknown>["createTransport"];
  /** Subscriptions may name every public host, not only the browsers' push services. */
  readonly anyPushService: boolean;
};

export const createConnectProvider = ({ createWebPushTransport, anyPushService, ...deps }: Deps): ConnectProvider => {
  const tokens = createTokenCache(deps.now);
  const webPushDeps = { now: deps.now, createTransport: createWebPushTransport, anyHost: anyPushService };
  return (provider, settings) => {
    switch (provider) {
      case "apns":
        return createApnsClient({ ...deps, settings: settings as ApnsSettings, tokens });
      case "fcm":
        return createFcmClient({ ...deps, settings: settings as FcmSettings });
      case "webpush":
        return createWebPushClient({ ...webPushDeps, settings: settings as StoredWebPushSettings });
    }
  };
};
