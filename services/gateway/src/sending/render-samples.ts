import type { DryRun, Platform, SendV1 } from "@herald/contracts";
import { drawnForm, fullForm, type PushForm, plainForm, renderApns, renderFcm, renderWebPush } from "@herald/payload";

/** Placeholders for the values of a device. */
const placeholders = { device: "<push token>", openToken: "<open token>" };

type Command = Omit<SendV1, "version">;

const android = ({ content, expiresAt, acceptedAt, sendAt, ...origin }: Command, locale?: string, form?: PushForm) => {
  const ttlMs = Date.parse(expiresAt) - Date.parse(sendAt ?? acceptedAt);
  const target = { token: placeholders.device, kind: "token" } as const;
  const lifetime = { ttlSeconds: Math.floor(ttlMs / 1000), apnsExpiration: "0" };
  return renderFcm(content, origin, "android", lifetime, form).body(target, placeholders.openToken, locale);
};

const samples: Record<Platform | "drawn", (command: Command, locale: string | undefined) => string> = {
  ios: ({ content, ...origin }, locale) =>
    renderApns(content, origin, fullForm(content)).body(placeholders.openToken, locale),
  android,
  drawn: (command, locale) => android(command, locale, drawnForm(command.content)),
  web: ({ content, ...origin }, locale) =>
    renderWebPush(content, origin, fullForm(content)).body(placeholders.openToken, locale),
};

/**
 * One payload per platform, as its provider would receive it for a device with this locale and all capabilities; absent: without
 * localization. `drawn`: the message that an Android app draws itself, if one would.
 */
export const renderSamples = (command: SendV1, platforms: readonly Platform[], locale?: string): DryRun["rendered"] => {
  const isDrawn = platforms.includes("android") && drawnForm(command.content) !== plainForm;
  return Object.fromEntries(
    [...platforms, ...(isDrawn ? (["drawn"] as const) : [])].map((name) => [
      name,
      JSON.parse(samples[name](command, locale)),
    ]),
  );
};
