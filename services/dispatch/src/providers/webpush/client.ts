import { hash } from "node:crypto";
import type { DeliveryReason, WebPushKeys } from "@herald/contracts";
import type { Transport, TransportAnswer, TransportOptions } from "@herald/http2-client";
import { NOT_PUBLIC, publicLookup, type Resolve } from "@herald/kit";
import { webPushMaxBytes } from "@herald/payload";
import webPush from "web-push";
import { secondsToLive } from "../../domain/seconds-to-live.ts";
import { type Outcome, unanswered } from "../outcome.ts";
import { checkEndpoint, knownPushServices } from "./endpoint-guard.ts";
import { type HeldKey, keyFor } from "./key-ring.ts";
import { webPushOutcome } from "./outcome.ts";
import { createPushOrigins } from "./push-origins.ts";
import { type CompleteWebPushSettings, ringOf } from "./settings.ts";
import { createVapid } from "./vapid.ts";

/** One notification for one subscription. */
export type WebPush = {
  /** The subscription's URL. */
  readonly endpoint: string;
  readonly keys: WebPushKeys | undefined;
  /** Which VAPID key the subscription was made with; absent: from before keys had ids. */
  readonly vapidKeyId?: string | undefined;
  /** The rendered payload, in the clear. */
  readonly body: string;
  readonly urgency: "very-low" | "low" | "normal" | "high";
  /** Until when the push service may keep it; a time that is past means: now or never. */
  readonly expiresAt: Date;
  readonly collapseId: string;
};

export type WebPushClient = {
  /** Never rejects for what a push service, the network or a subscription did. */
  send(push: WebPush): Promise<Outcome>;
  close(): Promise<void>;
};

export type WebPushClientOptions = {
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
}: WebPushClientOptions): WebPushClient {
  const { endpoint, ca, subject } = settings;
  const rules = { hosts: hosts ?? knownPushServices, exemptOrigin: endpoint && new URL(endpoint).origin };
  const ring = ringOf(settings, now());
  const signers = new Map<string, ReturnType<typeof createVapid>>();
  const lookup = publicLookup(resolve);
  const origins = createPushOrigins((origin) =>
    createTransport(origin === rules.exemptOrigin ? { origin, ca } : { origin, lookup, connections: 2 }),
  );

  function headersOf(push: WebPush, authorization: string, size: number): Record<string, string> {
    return {
      authorization,
      ttl: String(secondsToLive(push.expiresAt, now())),
      urgency: push.urgency,
      topic: topicOf(push.collapseId),
      "content-encoding": "aes128gcm",
      "content-type": "application/octet-stream",
      "content-length": String(size),
    };
  }

  function signerOf(key: HeldKey) {
    const known = signers.get(key.id);
    if (known) return known;
    const signer = createVapid({ subject, ...key }, now);
    signers.set(key.id, signer);
    return signer;
  }

  function judge(answer: TransportAnswer): Outcome {
    if (answer.kind === "answered") return webPushOutcome(answer, now());
    if (answer.reason.startsWith(NOT_PUBLIC)) return forbidden(NOT_PUBLIC);
    return unanswered(answer);
  }

  return {
    async send(push) {
      const target = checkEndpoint(push.endpoint, rules);
      if (!target.ok) return forbidden(target.problem);
      const size = Buffer.byteLength(push.body);
      if (size > webPushMaxBytes) return unsent("payload-too-large", `${size} bytes, ${webPushMaxBytes} fit`);
      const key = keyFor(ring, push.vapidKeyId);
      if (key === undefined)
        return unsent("vapid-key-retired", `the key ${push.vapidKeyId ?? ring.unnamed} was retired`);
      const body = encrypt(push.body, push.keys);
      if (body === undefined) return unsent("token-invalid", "the subscription's keys are not usable");
      const authorization = await signerOf(key).headerFor(target.origin);
      const headers = headersOf(push, authorization, body.length);
      return judge(
        await origins.use(target.origin, (transport) => transport.send({ path: target.path, headers, body })),
      );
    },
    close: origins.close,
  };
}

/** Refused here: no push service was asked, so it says nothing about the credential. */
const unsent = (reason: DeliveryReason, providerReason: string): Outcome => ({
  kind: "rejected",
  reason,
  providerReason,
  unsent: true,
});

const forbidden = (providerReason: string): Outcome => unsent("endpoint-forbidden", providerReason);

/** RFC 8291; undefined for keys that are no point of the curve or no secret. */
function encrypt(body: string, keys: WebPushKeys | undefined): Buffer | undefined {
  if (keys === undefined) return undefined;
  try {
    return webPush.encrypt(keys.p256dh, keys.auth, body, "aes128gcm").cipherText;
  } catch {
    return undefined;
  }
}

/** A topic is at most 32 characters of base64url; any other id is hashed, so that it still replaces its own kind. */
export const topicOf = (collapseId: string): string =>
  /^[A-Za-z0-9_-]{1,32}$/.test(collapseId) ? collapseId : hash("sha256", collapseId, "base64url").slice(0, 32);
