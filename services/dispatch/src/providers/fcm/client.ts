import type { FcmSettings } from "@herald/contracts";
import type { TransportAnswer } from "@herald/http2-client";
import { fcmMaxBytes, fcmWeight, hasForms, perForm, plainForm, pushForms, renderFcm } from "@herald/payload";
import { type Outcome, tooLarge, unanswered } from "../outcome.ts";
import {
  apnsExpiration,
  bytesAbove,
  type ClientDeps,
  type ProviderClient,
  secondsToLive,
  storedUntil,
} from "../provider-client.ts";
import { createAccessTokens } from "./access-tokens.ts";
import { fcmOutcome } from "./outcome.ts";
import { ServiceAccount } from "./settings.ts";

const fcmOrigin = "https://fcm.googleapis.com";
const googleOauthOrigin = "https://oauth2.googleapis.com";

/** Google's error codes for a refused credential, when a new access token may help. */
const staleTokenReasons = new Set(["UNAUTHENTICATED", "ACCESS_TOKEN_EXPIRED"]);

/** Sends to Firebase Cloud Messaging (HTTP v1) for one project. `endpoint` replaces Google's token endpoint, too. */
export function createFcmClient({ settings, createTransport, now }: ClientDeps<FcmSettings>): ProviderClient {
  const { endpoint, ca } = settings;
  const account = ServiceAccount.parse(settings.service_account);
  const path = `/v1/projects/${account.project_id}/messages:send`;
  const origin = endpoint ?? fcmOrigin;
  const oauthOrigin = endpoint ?? googleOauthOrigin;
  const transport = createTransport({ origin, ca });
  const oauth = createTransport({ origin: oauthOrigin, ca, connections: 1 });
  const tokens = createAccessTokens(account, { transport: oauth, origin: oauthOrigin }, now);

  const post = (authorization: string, body: string): Promise<TransportAnswer> =>
    transport.send({ path, headers: { authorization, "content-type": "application/json" }, body });
  const classify = (answer: TransportAnswer): Outcome =>
    answer.kind === "answered" ? fcmOutcome(answer, now(), origin) : unanswered(answer, origin);

  return {
    prepare: (message) => {
      const until = storedUntil(message);
      const { content, platform } = message;
      const lifetime = { ttlSeconds: secondsToLive(until, now()), apnsExpiration: apnsExpiration(until, now()) };
      const formOf = hasForms(content) ? pushForms(content, message) : undefined;
      const bodyOf = perForm((form) => renderFcm(content, message, platform, lifetime, form).body);
      return async (device, openToken, own) => {
        const { token, tokenKind: kind = "token", locale, liveToken } = device;
        const form = formOf?.(device) ?? plainForm;
        const body = own === undefined ? bodyOf(form) : renderFcm(own, message, platform, lifetime, form).body;
        const payload = body({ token, kind, liveToken }, openToken, locale);
        // FCM limits only a part of the body.
        const weight = bytesAbove(fcmMaxBytes, payload) === undefined ? 0 : fcmWeight(payload);
        if (weight > fcmMaxBytes) return tooLarge(weight, fcmMaxBytes);
        const current = tokens.current();
        const authorization = current instanceof Promise ? await current : current;
        if (typeof authorization !== "string") return authorization;
        const outcome = classify(await post(authorization, payload));
        if (outcome.kind !== "misconfigured" || !staleTokenReasons.has(outcome.providerReason)) return outcome;
        const renewed = (await tokens.renew(authorization)) ?? outcome;
        return typeof renewed === "string" ? classify(await post(renewed, payload)) : renewed;
      };
    },
    // Devices choose their token kind and platform, so failures of one kind or platform must not block the others.
    routeOf: ({ tokenKind }, platform) =>
      [platform === "android" ? "" : platform, tokenKind === "fid" ? "fid" : ""].filter(Boolean).join("/"),
    isNamedByDevice: () => false,
    renewToken: tokens.replace,
    close: async () => {
      await Promise.all([transport.close(), oauth.close()]);
    },
  };
}
