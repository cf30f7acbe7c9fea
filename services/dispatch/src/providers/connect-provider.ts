import type { ApnsSettings, FcmSettings, Provider } from "@herald/contracts";
import type { Transport, TransportOptions } from "@herald/http2-client";
import { collapseIdOf, renderApns, renderFcm, renderWebPush } from "@herald/payload";
import { apnsExpiration, secondsToLive } from "../domain/seconds-to-live.ts";
import { createApnsClient } from "./apns/client.ts";
import { createProviderTokens } from "./apns/provider-tokens.ts";
import { createFcmClient } from "./fcm/client.ts";
import type { Message, ProviderClient } from "./provider-client.ts";
import { createWebPushClient } from "./webpush/client.ts";
import { isKnownPushService } from "./webpush/endpoint-guard.ts";
import type { CompleteWebPushSettings } from "./webpush/settings.ts";

/** Makes a client for settings that were checked when they were put. */
export type ConnectProvider = (provider: Provider, settings: unknown) => ProviderClient;

type Deps = {
  readonly createTransport: (options: TransportOptions) => Transport;
  /** For push services, some of which are old. */
  readonly createWebPushTransport: (options: TransportOptions) => Transport;
  /** Subscriptions may name every public host, not only the browsers' push services. */
  readonly anyPushService: boolean;
  readonly now: () => Date;
};

/** Until when a provider may store it. No time to live means now or never, which a past time says. */
const storedUntil = ({ content, expiresAt }: Message): Date => (content.ttl === 0 ? new Date(0) : expiresAt);

const schemeLength = "https://".length;
/** What stands before the path. Parsing would cost more than the rest of the way, and two spellings are two routes. */
const originOf = (endpoint: string): string => {
  const path = endpoint.indexOf("/", schemeLength);
  return path === -1 ? endpoint : endpoint.slice(0, path);
};

/** The clients of `providers/`, each with its rendering: what is the same for all devices of a batch is done once. */
export const createConnectProvider = (deps: Deps): ConnectProvider => {
  const { createTransport, createWebPushTransport, anyPushService, now } = deps;
  const tokens = createProviderTokens(now);

  const apns = (settings: ApnsSettings): ProviderClient => {
    const client = createApnsClient({ settings, tokens, createTransport, now });
    return {
      prepare: (message) => {
        const { notificationId } = message;
        const { pushType, priority, body } = renderApns(message.content, message);
        const collapseId = collapseIdOf(message.content, message);
        const expiresAt = storedUntil(message);
        const send = client.prepare({ notificationId, pushType, priority, expiresAt, collapseId });
        return (device, openToken) => send(device, body(openToken, device.locale));
      },
      routeOf: ({ environment }) => (settings.endpoint === undefined ? (environment ?? settings.environment) : ""),
      isNamedByDevice: () => false,
      close: client.close,
    };
  };

  const fcm = (settings: FcmSettings): ProviderClient => {
    const client = createFcmClient({ settings, createTransport, now });
    return {
      prepare: (message) => {
        const until = storedUntil(message);
        const { body } = renderFcm(message.content, message, message.platform, {
          ttlSeconds: secondsToLive(until, now()),
          apnsExpiration: apnsExpiration(until, now()),
        });
        return ({ token, tokenKind: kind = "token", locale }, openToken) =>
          client.send({ body: body({ token, kind }, openToken, locale) });
      },
      // Devices choose their kind of token and their platform, so what one brings about must not keep the others waiting.
      routeOf: ({ tokenKind }, platform) =>
        [platform === "android" ? "" : platform, tokenKind === "fid" ? "fid" : ""].filter(Boolean).join("/"),
      isNamedByDevice: () => false,
      close: client.close,
    };
  };

  const webPush = (settings: CompleteWebPushSettings): ProviderClient => {
    const hosts = anyPushService ? "any" : undefined;
    const ownOrigin = settings.endpoint && originOf(settings.endpoint);
    const client = createWebPushClient({ settings, createTransport: createWebPushTransport, now, hosts });
    return {
      prepare: (message) => {
        const { urgency, body } = renderWebPush(message.content, message);
        const send = client.prepare({
          urgency,
          expiresAt: storedUntil(message),
          collapseId: collapseIdOf(message.content, message),
        });
        return ({ token: endpoint, keys, vapidKeyId, locale }, openToken) =>
          send({ endpoint, keys, vapidKeyId }, body(openToken, locale));
      },
      routeOf: ({ token: endpoint }) => originOf(endpoint),
      isNamedByDevice: (route) => route !== ownOrigin && !isKnownPushService(route),
      close: client.close,
    };
  };

  return (provider, settings) => {
    switch (provider) {
      case "apns":
        return apns(settings as ApnsSettings);
      case "fcm":
        return fcm(settings as FcmSettings);
      case "webpush":
        return webPush(settings as CompleteWebPushSettings);
    }
  };
};
