import {
  type Lane,
  maxTtlSeconds,
  type NotificationContent,
  type NotificationId,
  type Platform,
  type ProjectId,
  type Recipient,
} from "@herald/contracts";
import type { Transport, TransportOptions } from "@herald/http2-client";
import type { Outcome } from "../domain/outcome.ts";

/** The message for all devices of a batch. */
export type Message = {
  readonly projectId: ProjectId;
  readonly notificationId: NotificationId;
  readonly content: NotificationContent;
  readonly expiresAt: Date;
  /** The platform of the devices. */
  readonly platform: Platform;
  readonly lane: Lane;
  /** Of the start of a Live Activity: the channels that its devices can follow, by {@link ProviderChannels.nameOf}. */
  readonly channels?: ReadonlyMap<string, string> | undefined;
};

/**
 * What a provider says of channels. `refused`: not done; `not-done`: it did not get the request, and may do it later; `unknown`: it may have
 * been done.
 */
type ChannelAnswer =
  | { readonly kind: "done"; readonly ids: readonly string[] }
  | { readonly kind: "refused" | "not-done" | "unknown"; readonly reason: string };

/** The broadcast channels of a project's apps. */
export type ProviderChannels = {
  /** The name of the app and environment of a device, `<app>/<environment>`. Undefined: the settings do not name its app. */
  nameOf(device: Pick<Recipient, "app" | "environment">): string | undefined;
  /** Lists all channels of an app and environment, makes one, or deletes one, which is done if there is none. Never rejects. */
  ask(what: "list" | "make" | "delete", name: string, id?: string): Promise<ChannelAnswer>;
};

/** Sends with one version of one project's provider settings. */
export type ProviderClient = {
  /**
   * Prepares a message for the devices of one batch. The returned function costs little more than the request. Responses, network errors
   * and invalid tokens never make it reject. `own`: the content for this device alone, with the message's settings.
   */
  prepare(message: Message): (device: Recipient, openToken: string, own?: NotificationContent) => Promise<Outcome>;
  /** Absent: the provider has none. */
  readonly channels?: ProviderChannels;
  /** The route of a device: one of the provider's servers. A throttle or failure of a route affects only the devices on it. */
  routeOf(device: Recipient, platform: Platform): string;
  /** Whether only devices name a route's server. Its failures are not the provider's. */
  isNamedByDevice(route: string): boolean;
  /** Makes the next push use a new token, unless the current one is newer than `since`. Does nothing for a provider without tokens. */
  renewToken(since: Date): void;
  /** Ends requests in flight and closes all sockets. */
  close(): Promise<void>;
};

/** Dependencies of a provider's client. The settings were checked when they were put. */
export type ClientDeps<Settings> = {
  readonly settings: Settings;
  readonly createTransport: (options: TransportOptions) => Transport;
  readonly now: () => Date;
};

/** Until when a provider may store the push. A past time means: deliver now or never (`ttl` 0). */
export const storedUntil = ({ content, expiresAt }: Pick<Message, "content" | "expiresAt">): Date =>
  content.ttl === 0 ? new Date(0) : expiresAt;

/**
 * How long a provider may still store a push, in whole seconds, at most {@link maxTtlSeconds}. Another machine set `expiresAt`: if its
 * clock is ahead of this one, the rest would be longer than FCM accepts.
 */
export const secondsToLive = (expiresAt: Date, now: Date): number =>
  Math.min(maxTtlSeconds, Math.max(0, Math.floor((expiresAt.getTime() - now.getTime()) / 1_000)));

/** The value of `apns-expiration`: seconds since 1970, or `0` for now or never. */
export const apnsExpiration = (expiresAt: Date, now: Date): string =>
  expiresAt > now ? String(Math.floor(expiresAt.getTime() / 1_000)) : "0";

/** The bytes of a text that has more than `max`. Undefined: it fits, which for nearly all texts its length alone says. */
export const bytesAbove = (max: number, text: string): number | undefined => {
  if (text.length * maxUtf8Bytes <= max) return undefined;
  const bytes = Buffer.byteLength(text);
  return bytes > max ? bytes : undefined;
};
/** Of a code unit of UTF-16. */
const maxUtf8Bytes = 3;
