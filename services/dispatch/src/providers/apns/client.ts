import { createPrivateKey, hash } from "node:crypto";
import type { ApnsEnvironment, ApnsSettings } from "@herald/contracts";
import type { Transport, TransportAnswer } from "@herald/http2-client";
import { createByteCache } from "@herald/kit";
import { apnsMaxBytesOf, collapseIdOf, hasForms, perForm, plainForm, pushForms, renderApns } from "@herald/payload";
import { SignJWT } from "jose";
import { apnsId } from "../../domain/batch.ts";
import { acceptedOutcome, type Outcome, tokenMismatch, tooLarge, unanswered } from "../outcome.ts";
import { apnsExpiration, bytesAbove, type ClientDeps, type ProviderClient, storedUntil } from "../provider-client.ts";
import { createApnsChannels } from "./channels.ts";
import { apnsOutcome } from "./outcome.ts";

type SigningKey = { readonly key_id: string; readonly team_id: string; readonly private_key: string };

const minuteMs = 60_000;
/** Apple accepts a token for 60 minutes. Ten are left for requests that wait and for clocks that differ. */
const refreshMs = 50 * minuteMs;
/** "Update no more than once every 20 minutes." */
const renewalPauseMs = 20 * minuteMs;

/** Room for more keys than open clients: a key that is evicted and used again would sign more tokens than Apple allows. */
const tokensBytes = 16 * 1_048_576;
/** Memory of one key and its token. */
const tokenBytes = 1_024;

/** Keeps one token per key for all projects and connections, because Apple limits how often a key may change its token. */
export function createTokenCache(now: () => Date) {
  const known = createByteCache<string, ReturnType<typeof createProviderToken>>({
    name: "apns-provider-tokens",
    maxBytes: tokensBytes,
    sizeOf: () => tokenBytes,
  });
  return (key: SigningKey) => {
    // The private key is part of the id: a project with a wrong key must not provide the token of a project with the right key.
    const id = hash("sha256", `${key.team_id}/${key.key_id}/${key.private_key}`);
    const token = known.get(id) ?? createProviderToken(key, now);
    known.set(id, token);
    return token;
  };
}

/** The `authorization` header for one signing key. */
function createProviderToken({ key_id, team_id, private_key }: SigningKey, now: () => Date) {
  const key = createPrivateKey(private_key);
  let token: { readonly header: string; readonly issuedAt: number } | undefined;
  let signing: Promise<string> | undefined;
  let renewedAt = Number.NEGATIVE_INFINITY;

  const sign = async (): Promise<string> => {
    const issuedAt = now().getTime();
    const jwt = await new SignJWT({ iss: team_id, iat: Math.floor(issuedAt / 1_000) })
      .setProtectedHeader({ alg: "ES256", kid: key_id })
      .sign(key);
    token = { header: `bearer ${jwt}`, issuedAt };
    return token.header;
  };
  const signOnce = (): Promise<string> => {
    signing ??= sign().finally(() => {
      signing = undefined;
    });
    return signing;
  };

  return {
    /** The header value. A promise only when a new token must be signed. */
    current(): string | Promise<string> {
      const age = token === undefined ? Number.POSITIVE_INFINITY : now().getTime() - token.issuedAt;
      // After a clock was set back, the token is from the future. Apple refuses that, too.
      return token !== undefined && age < refreshMs && age >= -minuteMs ? token.header : signOnce();
    },
    /**
     * Replaces `stale`, which Apple calls expired, unless another push has already renewed it. Undefined when the last renewal is so
     * recent that Apple would refuse another with 429 TooManyProviderTokenUpdates, or that this machine's clock must be wrong.
     */
    renew(stale: string): Promise<string> | undefined {
      if (token !== undefined && token.header !== stale) return Promise.resolve(token.header);
      if (signing !== undefined) return signing;
      const at = now().getTime();
      if (at - renewedAt < renewalPauseMs) return undefined;
      renewedAt = at;
      return signOnce();
    },
    /** Signs another token for the next push, unless the current one is newer than `since`. Apple takes one more within 20 minutes. */
    replace(since: Date): void {
      const at = now().getTime();
      if (token === undefined || token.issuedAt > since.getTime() || at - renewedAt < renewalPauseMs) return;
      renewedAt = at;
      token = undefined;
    },
  };
}

export type ApnsClientDeps = ClientDeps<ApnsSettings> & {
  /** Shared by all clients of the process. */
  readonly tokens: ReturnType<typeof createTokenCache>;
};

const hosts: Record<ApnsEnvironment, string> = {
  production: "https://api.push.apple.com",
  sandbox: "https://api.sandbox.push.apple.com",
};
/** An app that the settings do not name. The app of a device is its own choice, so this must not pause the provider. */
const appNotConfigured: Outcome = Object.freeze({
  kind: "rejected",
  reason: "app-not-configured",
  providerReason: "",
  notSent: true,
});

/** What Apple says about a topic: for a further app or a push type it says nothing of the project's own app. */
const topicReasons: readonly string[] = ["BadTopic", "TopicDisallowed"];

const otherThan: Record<ApnsEnvironment, ApnsEnvironment> = { production: "sandbox", sandbox: "production" };

const notAToken: Outcome = Object.freeze({
  kind: "rejected",
  reason: "token-invalid",
  providerReason: "not a device token: not hexadecimal",
  notSent: true,
  badToken: true,
});

/** Posts a push to the host of an environment. Called again for a retry or for the other host. */
type Post = (environment: ApnsEnvironment, authorization: string | undefined) => Promise<TransportAnswer>;

/** Apple ended the TLS handshake because of the project's certificate. A retry would not help. */
const certificateRefused = /^ERR_SSL_\w*ALERT_\w*(CERTIFICATE|UNKNOWN_CA|ACCESS_DENIED)/;

/** Sends to Apple for one project. Connections are not shared between teams, as Apple requires. */
export function createApnsClient({ settings, tokens, createTransport, now }: ApnsClientDeps): ProviderClient {
  const { bundle_id, endpoint, ca } = settings;
  const certificate = "certificate" in settings ? settings : undefined;
  const apps = new Set("key_id" in settings ? [bundle_id, ...(settings.bundle_ids ?? [])] : [bundle_id]);
  const providerToken = "key_id" in settings ? tokens(settings) : undefined;
  const transports: Partial<Record<ApnsEnvironment, Transport>> = {};
  const connect = (origin: string): Transport =>
    createTransport({ origin, ca, certificate: certificate?.certificate, privateKey: certificate?.private_key });
  const { channels, close: closeChannels } = createApnsChannels({
    ...{ settings, apps, connect, authorization: () => providerToken?.current() },
  });

  const originOf = (environment: ApnsEnvironment): string => endpoint ?? hosts[environment];

  /** A project with its own endpoint has one transport for both environments. */
  function transportTo(environment: ApnsEnvironment): Transport {
    const slot = endpoint === undefined ? environment : settings.environment;
    transports[slot] ??= connect(originOf(slot));
    return transports[slot];
  }

  function classify(answer: TransportAnswer, environment: ApnsEnvironment): Outcome {
    if (answer.kind === "answered") return apnsOutcome(answer, now(), originOf(environment));
    if (certificate !== undefined && certificateRefused.test(answer.reason))
      return { kind: "misconfigured", providerReason: answer.reason };
    return unanswered(answer, originOf(environment));
  }

  /** The outcome from one host. If the provider token has expired, renews it and retries once. */
  async function renewAndRetry(
    post: Post,
    environment: ApnsEnvironment,
    authorization: string | undefined,
    answer: TransportAnswer,
  ): Promise<Outcome> {
    const outcome = classify(answer, environment);
    if (authorization === undefined || !isExpired(outcome)) return outcome;
    const renewed = await providerToken?.renew(authorization);
    return renewed === undefined ? outcome : classify(await post(environment, renewed), environment);
  }

  /** The outcome after any response but 200. Tries the other environment's host if the device token may belong there. */
  async function retryOtherEnvironment(
    post: Post,
    environment: ApnsEnvironment,
    authorization: string | undefined,
    answer: TransportAnswer,
  ): Promise<Outcome> {
    const outcome = await renewAndRetry(post, environment, authorization, answer);
    // A key or certificate may be valid for one environment only, and the device chose another one than the project.
    if (outcome.kind === "misconfigured" && environment !== settings.environment)
      return tokenMismatch("environment-mismatch", outcome.providerReason);
    if (!isBadToken(outcome)) return outcome;
    if (endpoint !== undefined) return { ...outcome, badToken: true };
    // A token from a build for the other environment is invalid here and valid there.
    const other = otherThan[environment];
    const current = await providerToken?.current();
    const second = await renewAndRetry(post, other, current, await post(other, current));
    // A key or certificate may be valid for one environment only, so this says nothing about the token.
    if (second.kind === "misconfigured") return outcome;
    if (isBadToken(second)) return { ...second, badToken: true };
    if (second.kind === "unknown") return { ...second, elsewhere: true };
    // The device's own host has processed the push, so it uses an attempt.
    return second.kind === "deferred" ? { ...second, unprocessed: undefined, elsewhere: true } : second;
  }

  return {
    channels,
    prepare: (message) => {
      const { notificationId, content } = message;
      const { pushType, topicEnding, priority } = renderApns(content, message);
      const formOf = hasForms(content) ? pushForms(content, { ...message, platform: "ios" }) : undefined;
      const bodyOf = perForm((form) => renderApns(content, message, form).body);
      const collapseId = collapseIdOf(content, message);
      const maxBytes = apnsMaxBytesOf(content);
      // The clock is read only once for all devices.
      const expiration = apnsExpiration(storedUntil(message), now());

      const starts = new Map(
        [...(message.channels ?? [])].map(([name, channel]) => [
          name,
          renderApns(content, { ...message, channel }).body,
        ]),
      );

      return (device, openToken, own) => {
        const { id, token, environment = settings.environment, app = bundle_id, locale } = device;
        if (!apps.has(app)) return Promise.resolve(appNotConfigured);
        if (!device.broadcast && !/^(?:[0-9a-fA-F]{2}){1,200}$/.test(token)) return Promise.resolve(notAToken);
        const form = formOf?.(device) ?? plainForm;
        const body = own === undefined ? bodyOf(form) : renderApns(own, message, form).body;
        const start = device.channels && starts.get(channels.nameOf(device) ?? "");
        const payload = (start || body)(openToken, locale);
        const excessive = bytesAbove(maxBytes, payload);
        if (excessive !== undefined) return Promise.resolve(tooLarge(excessive, maxBytes));
        const post: Post = (host, authorization) => {
          const headers: Record<string, string> = {
            "apns-push-type": pushType,
            ...(device.broadcast ? { "apns-channel-id": token } : { "apns-topic": app + topicEnding }),
            "apns-expiration": expiration,
            "apns-priority": `${priority}`,
            [device.broadcast ? "apns-request-id" : "apns-id"]: apnsId(notificationId, id),
          };
          // iOS shows one card for each activity, and orders its states by their timestamps.
          if (content.activity === undefined) headers["apns-collapse-id"] = collapseId;
          if (authorization !== undefined) headers.authorization = authorization;
          const path = device.broadcast ? `/4/broadcasts/apps/${app}` : `/3/device/${token}`;
          // The other host does not know a channel of this one.
          const sent = start && host !== environment ? body(openToken, locale) : payload;
          return transportTo(host).send({ path, headers, body: sent });
        };
        /** Nearly every push ends here. Not async, because each nested async function would cost another promise per push. */
        const send = (authorization: string | undefined): Promise<Outcome> =>
          post(environment, authorization).then((answer) =>
            answer.kind === "answered" && answer.status === 200 && answer.headers["apns-id"] !== undefined
              ? acceptedOutcome
              : retryOtherEnvironment(post, environment, authorization, answer).then((outcome) =>
                  // With several apps, what is wrong with one of them must not pause the others.
                  (apps.size > 1 || app + topicEnding !== bundle_id) && isAboutTopic(outcome)
                    ? tokenMismatch(
                        app === bundle_id && topicEnding !== "" ? "push-type-refused" : "app-not-configured",
                        outcome.providerReason,
                      )
                    : outcome,
                ),
          );
        const current = providerToken?.current();
        return current instanceof Promise ? current.then(send) : send(current);
      };
    },
    routeOf: ({ environment }) => (endpoint === undefined ? (environment ?? settings.environment) : ""),
    isNamedByDevice: () => false,
    renewToken: (since) => providerToken?.replace(since),
    close: async () => {
      await Promise.all([...Object.values(transports).map((transport) => transport.close()), closeChannels()]);
    },
  };
}

const isAboutTopic = (outcome: Outcome): outcome is Extract<Outcome, { kind: "misconfigured" }> =>
  outcome.kind === "misconfigured" && topicReasons.includes(outcome.providerReason);

const isExpired = (outcome: Outcome): boolean =>
  outcome.kind === "misconfigured" && outcome.providerReason === "ExpiredProviderToken";

const isBadToken = (outcome: Outcome): outcome is Extract<Outcome, { kind: "rejected" }> =>
  outcome.kind === "rejected" && outcome.providerReason === "BadDeviceToken";
