import type { DeliveryReason, WebPushKeys } from "@herald/contracts";
import type { Transport, TransportAnswer, TransportOptions } from "@herald/http2-client";
import { notPublicText, publicLookup, type Resolve } from "@herald/kit";
import { webPushMaxBytes, webPushTopic } from "@herald/payload";
import { secondsToLive } from "../../domain/seconds-to-live.ts";
import { type Outcome, unanswered } from "../outcome.ts";
import { encryptPush, newSenderKeys } from "./encryption.ts";
import { checkEndpoint, knownPushServices } from "./endpoint-guard.ts";
import { keyFor, type RingKey } from "./key-ring.ts";
import { webPushOutcome } from "./outcome.ts";
import { createPushOrigins } from "./push-origins.ts";
import { type CompleteWebPushSettings, ringOf } from "./settings.ts";
import { createVapid } from "./vapid.ts";

/** What is the same for all subscriptions of a batch. */
export type WebPushMessage = {
  readonly urgency: "very-low" | "low" | "normal" | "high";
  /** Until when the push service may keep it; a time that is past means: now or never. */
  readonly expiresAt: Date;
  readonly collapseId: string;
};

export type WebPushRecipient = {
  /** The subscription's URL. */
  readonly endpoint: string;
  readonly keys: WebPushKeys | undefined;
  /** Which VAPID key the subscription was made with; absent: from before keys had ids. */
  readonly vapidKeyId?: string | undefined;
};

export type WebPushClient = {
  /**
   * Sends one message to each recipient that it is called with; `body` is the rendered payload, in the clear. Never rejects for
   * what a push service, the network or a subscription did.
   */
  prepare(message: WebPushMessage): (recipient: WebPushRecipient, body: string) => Promise<Outcome>;
  close(): Promise<void>;
};

export type WebPushClientDeps = {
  readonly settings: CompleteWebPushSettings;
  readonly createTransport: (options: TransportOptions) => Transport;
  readonly now: () => Date;
  /** Names that subscriptions may have for hosts; `any` is the operator's to allow. Default: the browsers' push services. */
  readonly hosts?: readonly string[] | "any" | undefined;
  /** Default: the system's resolver. */
  readonly resolve?: Resolve | undefined;
};

/** Sends to the push services of browsers for one project, to each over connections of its own. */
export function createWebPushClient({
  settings,
  createTransport,
  now,
  hosts,
  resolve,
}: WebPushClientDeps): WebPushClient {
  const { endpoint, ca, subject } = settings;
  const rules = { hosts: hosts ?? knownPushServices, exemptOrigin: endpoint && new URL(endpoint).origin };
  const ring = ringOf(settings, now());
  const signers = new Map<string, ReturnType<typeof createVapid>>();
  const lookup = publicLookup(resolve);
  const origins = createPushOrigins((origin) =>
    createTransport(origin === rules.exemptOrigin ? { origin, ca } : { origin, lookup, connections: 2 }),
  );

  function signerOf(key: RingKey) {
    const known = signers.get(key.id);
    if (known) return known;
    const signer = createVapid({ subject, ...key }, now);
    signers.set(key.id, signer);
    return signer;
  }

  function judge(answer: TransportAnswer, origin: string): Outcome {
    if (answer.kind === "answered") return webPushOutcome(answer, now());
    if (answer.reason.startsWith(notPublicText)) return forbidden(notPublicText);
    return unanswered(answer, origin);
  }

  return {
    prepare({ urgency, expiresAt, collapseId }) {
      const topic = webPushTopic(collapseId);
      const senderKeys = newSenderKeys();
      return async ({ endpoint, keys, vapidKeyId }, text) => {
        const target = checkEndpoint(endpoint, rules);
        if (!target.ok) return forbidden(target.problem);
        const size = Buffer.byteLength(text);
        if (size > webPushMaxBytes) return notSent("payload-too-large", `${size} bytes, ${webPushMaxBytes} fit`);
        const key = keyFor(ring, vapidKeyId);
        if (key === undefined) return notSent("vapid-key-retired", `the key ${vapidKeyId ?? ring.unnamed} was retired`);
        const encrypted = await encryptPush(text, keys, senderKeys);
        if ("problem" in encrypted) return notSent("token-invalid", encrypted.problem);
        const { body } = encrypted;
        const headers = {
          authorization: await signerOf(key).headerFor(target.origin),
          ttl: String(secondsToLive(expiresAt, now())),
          urgency,
          topic,
          "content-encoding": "aes128gcm",
          "content-type": "application/octet-stream",
          "content-length": String(body.length),
        };
        return judge(
          await origins.use(target.origin, (transport) => transport.send({ path: target.path, headers, body })),
          target.origin,
        );
      };
    },
    close: origins.close,
  };
}

/** Refused here: no push service was asked, so it says nothing about the credential. */
const notSent = (reason: DeliveryReason, providerReason: string): Outcome => ({
  kind: "rejected",
  reason,
  providerReason,
  notSent: true,
});

const forbidden = (providerReason: string): Outcome => notSent("endpoint-forbidden", providerReason);
