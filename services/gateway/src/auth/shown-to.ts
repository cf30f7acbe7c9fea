import type { Device, Notification, Scope, Webhook, WebhookMessageDetail } from "@herald/contracts";
import type { CallerOf } from "./caller.ts";

/**
 * Some values are shown and also prove something: a push token identifies its device's app, and the URLs of chat systems are
 * credentials. A caller whose scopes are only for reading gets enough of them to recognise them.
 */
type Shown = CallerOf<"project" | "device">;

const has = (caller: Shown, ...scopes: readonly Scope[]): boolean =>
  caller.kind === "device" || caller.scopes.some((scope) => scopes.includes(scope));

const seesTokens = (caller: Shown): boolean => has(caller, "devices", "export");

const maxShown = 8;

/** No provider accepts `…` in a push token, so the result cannot be registered by mistake. */
const endOf = (token: string): string =>
  `…${token.slice(Math.max(token.length - maxShown, Math.ceil(token.length / 2)))}`;

const tokenPrefix = "token:";

const withoutToken = (target: string): string =>
  target.startsWith(tokenPrefix) ? tokenPrefix + endOf(target.slice(tokenPrefix.length)) : target;

/** Whole push tokens are for the scopes `devices` and `export`, and for the device itself. */
export const deviceFor =
  (caller: Shown) =>
  (device: Device): Device =>
    seesTokens(caller)
      ? device
      : {
          ...device,
          token: endOf(device.token),
          ...(device.tokens && { tokens: device.tokens.map((one) => ({ ...one, token: endOf(one.token) })) }),
        };

/** A target that quotes a push token. */
export const targetFor = (caller: Shown, target: string): string =>
  seesTokens(caller) ? target : withoutToken(target);

type Quoting = Pick<Notification, "targets" | "unmatched">;

export const notificationFor =
  (caller: Shown) =>
  <One extends Quoting>(notification: One): One =>
    seesTokens(caller)
      ? notification
      : {
          ...notification,
          targets: notification.targets.map(withoutToken),
          unmatched: notification.unmatched.map(withoutToken),
        };

/** The whole URL is for callers who may change webhooks. */
export const webhookFor =
  (caller: Shown) =>
  (webhook: Webhook): Webhook =>
    has(caller, "send") ? webhook : { ...webhook, url: `${new URL(webhook.url).origin}/…` };

/** Error pages quote the URL's path, so responses are for the same callers. */
export const messageFor = (caller: Shown, message: WebhookMessageDetail): WebhookMessageDetail =>
  has(caller, "send")
    ? message
    : { ...message, attempts: message.attempts.map(({ response: _, ...attempt }) => attempt) };
