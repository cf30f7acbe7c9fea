import type { ApnsEnvironment, ApnsSettings, DeviceId, NotificationId } from "@herald/contracts";
import type { Transport, TransportAnswer, TransportOptions } from "../../transport/transport.ts";
import { type Outcome, unanswered } from "../outcome.ts";
import { apnsId } from "./apns-id.ts";
import { apnsOutcome } from "./outcome.ts";
import type { ProviderTokens } from "./provider-tokens.ts";

/** One notification for one device. */
export type ApnsPush = {
  readonly deviceId: DeviceId;
  readonly notificationId: NotificationId;
  /** The device token, hexadecimal. */
  readonly token: string;
  /** Where the app was built for; the project's setting when absent. */
  readonly environment?: ApnsEnvironment | undefined;
  /** The rendered payload, JSON. */
  readonly body: string;
  readonly pushType: "alert" | "background";
  readonly priority: 10 | 5 | 1;
  /** Until when Apple may keep it; a time that is past means: now or never. */
  readonly expiresAt: Date;
  /** At most 64 bytes of visible ASCII. */
  readonly collapseId: string;
};

export type ApnsClient = {
  /** Never rejects for what Apple, the network or a token did. */
  send(push: ApnsPush): Promise<Outcome>;
  close(): Promise<void>;
};

export type ApnsClientOptions = {
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

/** TLS ended by the peer because of this side's certificate: it does not wait for better times. */
const CERTIFICATE_REFUSED = /^ERR_SSL_\w*ALERT_\w*(CERTIFICATE|UNKNOWN_CA|ACCESS_DENIED)/;

/** Sends to Apple for one project. A team's connections are its own, as Apple asks. */
export function createApnsClient({ settings, tokens, createTransport, now }: ApnsClientOptions): ApnsClient {
  const { bundle_id, endpoint, ca } = settings;
  const certificate = "certificate" in settings ? settings : undefined;
  const providerToken = "key_id" in settings ? tokens.of(settings) : undefined;
  const transports: Partial<Record<ApnsEnvironment, Transport>> = {};

  /** With an endpoint of its own a project has one transport, whatever the environment. */
  function transportTo(environment: ApnsEnvironment): Transport {
    const slot = endpoint === undefined ? environment : settings.environment;
    transports[slot] ??= createTransport({
      origin: endpoint ?? hosts[slot],
      ca,
      certificate: certificate?.certificate,
      privateKey: certificate?.private_key,
    });
    return transports[slot];
  }

  const post = (push: ApnsPush, environment: ApnsEnvironment, authorization: string | undefined) =>
    transportTo(environment).send({
      path: `/3/device/${push.token}`,
      headers: headersOf(push, authorization),
      body: push.body,
    });

  function judge(answer: TransportAnswer): Outcome {
    if (answer.kind === "answered") return apnsOutcome(answer, now());
    if (certificate !== undefined && CERTIFICATE_REFUSED.test(answer.reason))
      return { kind: "misconfigured", providerReason: answer.reason };
    return unanswered(answer);
  }

  /** One host's word, after a new provider token if that was all that it missed. */
  async function attempt(push: ApnsPush, environment: ApnsEnvironment): Promise<Outcome> {
    const current = providerToken?.current();
    const authorization = current instanceof Promise ? await current : current;
    const outcome = judge(await post(push, environment, authorization));
    if (authorization === undefined || !isAbout(outcome, "misconfigured", "ExpiredProviderToken")) return outcome;
    const renewed = await providerToken?.renew(authorization);
    return renewed === undefined ? outcome : judge(await post(push, environment, renewed));
  }

  function headersOf(push: ApnsPush, authorization: string | undefined): Record<string, string> {
    const left = push.expiresAt.getTime() - now().getTime();
    const headers: Record<string, string> = {
      "apns-push-type": push.pushType,
      "apns-topic": bundle_id,
      "apns-expiration": left > 0 ? String(Math.floor(push.expiresAt.getTime() / 1_000)) : "0",
      "apns-priority": String(push.priority),
      "apns-id": apnsId(push.notificationId, push.deviceId),
      "apns-collapse-id": push.collapseId,
    };
    if (authorization !== undefined) headers.authorization = authorization;
    return headers;
  }

  return {
    async send(push) {
      if (!/^(?:[0-9a-fA-F]{2}){1,200}$/.test(push.token))
        return { kind: "rejected", reason: "token-invalid", providerReason: "not a device token: not hexadecimal" };
      const first = push.environment ?? settings.environment;
      const outcome = await attempt(push, first);
      if (!isAbout(outcome, "rejected", "BadDeviceToken") || endpoint !== undefined) return outcome;
      // A build for the other environment has tokens that are bad here and good there.
      const second = await attempt(push, otherThan[first]);
      // A key or a certificate may be for one environment only: that is no word about the token.
      return second.kind === "misconfigured" ? outcome : second;
    },
    async close() {
      await Promise.all(Object.values(transports).map((transport) => transport.close()));
    },
  };
}

const isAbout = (outcome: Outcome, kind: "rejected" | "misconfigured", word: string): boolean =>
  outcome.kind === kind && outcome.providerReason === word;
