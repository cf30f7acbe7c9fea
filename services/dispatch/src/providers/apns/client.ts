import type { ApnsEnvironment, ApnsSettings, DeviceId, NotificationId } from "@herald/contracts";
import type { Transport, TransportAnswer, TransportOptions } from "@herald/http2-client";
import { apnsExpiration } from "../../domain/seconds-to-live.ts";
import { accepted, type Outcome, tokenMismatch, unanswered } from "../outcome.ts";
import { apnsId } from "./apns-id.ts";
import { apnsOutcome } from "./outcome.ts";
import type { ProviderTokens } from "./provider-tokens.ts";

/** One notification, as far as it is the same for all devices. */
export type ApnsMessage = {
  readonly notificationId: NotificationId;
  readonly pushType: "alert" | "background";
  readonly priority: 10 | 5 | 1;
  /** Until when Apple may keep it; a time that is past means: now or never. */
  readonly expiresAt: Date;
  /** At most 64 bytes of visible ASCII. */
  readonly collapseId: string;
};

/** Where one push goes. */
export type ApnsAddress = {
  readonly id: DeviceId;
  /** The device token, hexadecimal. */
  readonly token: string;
  /** Where the app was built for; the project's setting when absent. */
  readonly environment?: ApnsEnvironment | undefined;
};

/** Sends the rendered payload, JSON. Never rejects for what Apple, the network or a token did. */
export type ApnsSend = (to: ApnsAddress, body: string) => Promise<Outcome>;

export type ApnsClient = {
  /** Does what is the same for all devices; for one batch of them, because it takes the time for that of sending. */
  prepare(message: ApnsMessage): ApnsSend;
  close(): Promise<void>;
};

export type ApnsClientDeps = {
  readonly settings: ApnsSettings;
  /** Shared by all clients of the process. */
  readonly tokens: ProviderTokens;
  readonly createTransport: (options: TransportOptions) => Transport;
  readonly now: () => Date;
};

const hosts: Record<ApnsEnvironment, string> = {
  production: "https://api.push.apple.com",
  sandbox: "https://api.sandbox.push.apple.com",
};
const otherThan: Record<ApnsEnvironment, ApnsEnvironment> = { production: "sandbox", sandbox: "production" };

const notAToken: Outcome = Object.freeze({
  kind: "rejected",
  reason: "token-invalid",
  providerReason: "not a device token: not hexadecimal",
  notSent: true,
});

/** A push to one host, once more or elsewhere when it must be. */
type Post = (environment: ApnsEnvironment, authorization: string | undefined) => Promise<TransportAnswer>;

/** TLS ended by the peer because of this side's certificate: it does not wait for better times. */
const certificateRefused = /^ERR_SSL_\w*ALERT_\w*(CERTIFICATE|UNKNOWN_CA|ACCESS_DENIED)/;

/** Sends to Apple for one project. A team's connections are its own, as Apple asks. */
export function createApnsClient({ settings, tokens, createTransport, now }: ApnsClientDeps): ApnsClient {
  const { bundle_id, endpoint, ca } = settings;
  const certificate = "certificate" in settings ? settings : undefined;
  const providerToken = "key_id" in settings ? tokens.of(settings) : undefined;
  const transports: Partial<Record<ApnsEnvironment, Transport>> = {};

  const originOf = (environment: ApnsEnvironment): string => endpoint ?? hosts[environment];

  /** With an endpoint of its own a project has one transport, whatever the environment. */
  function transportTo(environment: ApnsEnvironment): Transport {
    const slot = endpoint === undefined ? environment : settings.environment;
    transports[slot] ??= createTransport({
      origin: originOf(slot),
      ca,
      certificate: certificate?.certificate,
      privateKey: certificate?.private_key,
    });
    return transports[slot];
  }

  function judge(answer: TransportAnswer, environment: ApnsEnvironment): Outcome {
    if (answer.kind === "answered") return apnsOutcome(answer, now());
    if (certificate !== undefined && certificateRefused.test(answer.reason))
      return { kind: "misconfigured", providerReason: answer.reason };
    return unanswered(answer, originOf(environment));
  }

  /** One host's word, after a new provider token if that was all that it missed. */
  async function verdict(
    post: Post,
    environment: ApnsEnvironment,
    authorization: string | undefined,
    answer: TransportAnswer,
  ): Promise<Outcome> {
    const outcome = judge(answer, environment);
    if (authorization === undefined || !isAbout(outcome, "misconfigured", "ExpiredProviderToken")) return outcome;
    const renewed = await providerToken?.renew(authorization);
    return renewed === undefined ? outcome : judge(await post(environment, renewed), environment);
  }

  /** What the answer of the first host means, after a look at the other one if the token may belong there. */
  async function pursue(
    post: Post,
    environment: ApnsEnvironment,
    authorization: string | undefined,
    answer: TransportAnswer,
  ): Promise<Outcome> {
    const outcome = await verdict(post, environment, authorization, answer);
    // A key or a certificate may be for one environment only, and it is the device that names another than the project's.
    if (outcome.kind === "misconfigured" && environment !== settings.environment)
      return tokenMismatch("environment-mismatch", outcome.providerReason);
    if (!isAbout(outcome, "rejected", "BadDeviceToken") || endpoint !== undefined) return outcome;
    // A build for the other environment has tokens that are bad here and good there.
    const other = otherThan[environment];
    const current = await providerToken?.current();
    const second = await verdict(post, other, current, await post(other, current));
    // A key or a certificate may be for one environment only: that is no word about the token.
    if (second.kind === "misconfigured") return outcome;
    return second.kind === "deferred" || second.kind === "unknown" ? { ...second, elsewhere: true } : second;
  }

  return {
    prepare({ notificationId, pushType, priority, expiresAt, collapseId }) {
      const expiration = apnsExpiration(expiresAt, now());

      const post = (
        { id, token }: ApnsAddress,
        body: string,
        environment: ApnsEnvironment,
        authorization: string | undefined,
      ): Promise<TransportAnswer> => {
        const headers: Record<string, string> = {
          "apns-push-type": pushType,
          "apns-topic": bundle_id,
          "apns-expiration": expiration,
          "apns-priority": `${priority}`,
          "apns-id": apnsId(notificationId, id),
          "apns-collapse-id": collapseId,
        };
        if (authorization !== undefined) headers.authorization = authorization;
        return transportTo(environment).send({ path: `/3/device/${token}`, headers, body });
      };

      /** Nearly every push ends here: of asynchronous functions within each other, each would cost it another promise. */
      const sendTo = (
        to: ApnsAddress,
        body: string,
        environment: ApnsEnvironment,
        authorization: string | undefined,
      ): Promise<Outcome> =>
        post(to, body, environment, authorization).then((answer) =>
          answer.kind === "answered" && answer.status === 200
            ? accepted
            : pursue((host, current) => post(to, body, host, current), environment, authorization, answer),
        );

      return (to, body) => {
        if (!/^(?:[0-9a-fA-F]{2}){1,200}$/.test(to.token)) return Promise.resolve(notAToken);
        const environment = to.environment ?? settings.environment;
        const current = providerToken?.current();
        return current instanceof Promise
          ? current.then((authorization) => sendTo(to, body, environment, authorization))
          : sendTo(to, body, environment, current);
      };
    },
    async close() {
      await Promise.all(Object.values(transports).map((transport) => transport.close()));
    },
  };
}

const isAbout = (outcome: Outcome, kind: "rejected" | "misconfigured", word: string): boolean =>
  outcome.kind === kind && outcome.providerReason === word;
