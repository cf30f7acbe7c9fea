import type { NotificationContent } from "@herald/contracts";
import type { Transport, TransportAnswer } from "@herald/http2-client";
import { checkPublicEndpoint, notPublicText, publicLookup, type Resolve } from "@herald/kit";
import {
  collapseIdOf,
  declarativeType,
  hasForms,
  type PushForm,
  perForm,
  plainForm,
  pushForms,
  renderDeclarative,
  renderWebPush,
  webPushMaxBytes,
  webPushTopic,
} from "@herald/payload";
import { neverSendable, notSent, type Outcome, tooLarge, unanswered } from "../outcome.ts";
import { bytesAbove, type ClientDeps, type ProviderClient, secondsToLive, storedUntil } from "../provider-client.ts";
import { encryptPush, newSenderKeys } from "./encryption.ts";
import { webPushOutcome } from "./outcome.ts";
import { createVapid, keyFor, type RingKey, type StoredWebPushSettings } from "./settings.ts";

/**
 * The push services of the browsers, including subdomains. An endpoint is a URL from an untrusted client, so by default Herald
 * calls no other hosts.
 */
const knownPushServices: readonly string[] = [
  "fcm.googleapis.com",
  "jmt17.google.com",
  "push.services.mozilla.com",
  "notify.windows.com",
  "push.apple.com",
];

const isPushService = (hostname: string): boolean =>
  knownPushServices.some((host) => hostname === host || hostname.endsWith(`.${host}`));

/** Whether an origin, as written in a subscription, is one of the browsers' push services. */
export const isKnownPushService = (origin: string): boolean => isPushService(URL.parse(origin)?.hostname ?? "");

/** Safari's push service. Only Safari shows declarative pushes, and counts a push that its worker does not show against the site. */
const isSafari = (hostname: string): boolean => hostname.endsWith(".push.apple.com");

type EndpointRules = {
  /** The operator lets subscriptions name every public host, as UnifiedPush needs. */
  readonly anyHost: boolean;
  /** The origin of the project's own `endpoint`, to which no rule applies. */
  readonly exemptOrigin?: string | undefined;
};

/** Checks the URL alone. The addresses that its name resolves to are checked at connect. */
export function checkEndpoint(
  endpoint: string,
  { anyHost, exemptOrigin }: EndpointRules,
): ReturnType<typeof checkPublicEndpoint> {
  const checked = checkPublicEndpoint(endpoint, exemptOrigin);
  if (checked.ok && checked.origin !== exemptOrigin && !anyHost && !isPushService(checked.hostname))
    return { ok: false, problem: "the endpoint's host is not a known push service" };
  return checked;
}

export type WebPushClientDeps = ClientDeps<StoredWebPushSettings> & {
  /** Subscriptions may name every public host. Only the operator can allow that. */
  readonly anyHost: boolean;
  /** Default: the system's resolver. */
  readonly resolve?: Resolve | undefined;
};

const schemeLength = "https://".length;
/** The part of a URL before its path. Not parsed, which would cost more than the rest of a push. Two spellings are two routes. */
const originOf = (endpoint: string): string => {
  const path = endpoint.indexOf("/", schemeLength);
  return path === -1 ? endpoint : endpoint.slice(0, path);
};

/** Sends to browsers' push services for one project, with separate connections to each service. */
export function createWebPushClient({
  settings,
  createTransport,
  now,
  anyHost,
  resolve,
}: WebPushClientDeps): ProviderClient {
  const { endpoint: ownEndpoint, ca, subject, ring, site } = settings;
  const exemptOrigin = ownEndpoint && new URL(ownEndpoint).origin;
  const signers = new Map<string, ReturnType<typeof createVapid>>();
  const lookup = publicLookup(resolve);
  const origins = createPushOrigins((origin) =>
    createTransport(origin === exemptOrigin ? { origin, ca } : { origin, lookup, connections: 2 }),
  );

  function signerOf(key: RingKey) {
    const known = signers.get(key.id);
    if (known) return known;
    const signer = createVapid({ subject, ...key }, now);
    signers.set(key.id, signer);
    return signer;
  }

  function classify(answer: TransportAnswer, origin: string): Outcome {
    if (answer.kind === "answered") return webPushOutcome(answer, now(), origin);
    if (answer.reason.startsWith(notPublicText)) return forbidden(notPublicText);
    return unanswered(answer, origin);
  }

  return {
    prepare: (message) => {
      const { content } = message;
      const { urgency } = renderWebPush(content, message);
      const formOf = hasForms(content) ? pushForms(content, message) : undefined;
      const renderingOf = (shown: NotificationContent, form: PushForm) => ({
        render: renderWebPush(shown, message, form).body,
        declarative: site === undefined ? undefined : renderDeclarative(shown, message, site, form),
      });
      const renderings = perForm((form) => renderingOf(content, form));
      const until = storedUntil(message);
      const topic = webPushTopic(collapseIdOf(message.content, message));
      const senderKeys = newSenderKeys();
      return async (device, openToken, own) => {
        const { token: endpoint, keys, vapidKeyId, locale } = device;
        const form = formOf?.(device) ?? plainForm;
        const { render, declarative } = own === undefined ? renderings(form) : renderingOf(own, form);
        const target = checkEndpoint(endpoint, { anyHost, exemptOrigin });
        if (!target.ok) return refused(endpoint, target.problem);
        const declared = isSafari(target.hostname) ? declarative?.(openToken, locale) : undefined;
        const text = declared ?? render(openToken, locale);
        const excessive = bytesAbove(webPushMaxBytes, text);
        if (excessive !== undefined) return tooLarge(excessive, webPushMaxBytes);
        const key = keyFor(ring, vapidKeyId);
        if (key === undefined) return notSent("vapid-key-retired", `the key ${vapidKeyId ?? ring.unnamed} was retired`);
        const encrypted = await encryptPush(text, keys, senderKeys);
        if ("problem" in encrypted) return neverSendable("token-invalid", encrypted.problem);
        const { body } = encrypted;
        const headers = {
          authorization: await signerOf(key)(target.origin),
          ttl: String(secondsToLive(until, now())),
          urgency,
          topic,
          "content-encoding": "aes128gcm",
          "content-type": declared === undefined ? "application/octet-stream" : declarativeType,
          "content-length": String(body.length),
        };
        return classify(
          await origins.use(target.origin, (transport) => transport.send({ path: target.path, headers, body })),
          target.origin,
        );
      };
    },
    routeOf: ({ token: endpoint }) => originOf(endpoint),
    renewToken: () => {},
    isNamedByDevice: (route) => route !== exemptOrigin && !isKnownPushService(route),
    close: origins.close,
  };
}

const forbidden = (providerReason: string): Outcome => notSent("endpoint-forbidden", providerReason);

/** The operator may allow every public host. Beside the project's own push service, nothing allows one that is not public. */
const refused = (endpoint: string, problem: string): Outcome =>
  checkPublicEndpoint(endpoint).ok ? forbidden(problem) : neverSendable("endpoint-forbidden", problem);

/** A project's subscriptions usually use a handful of push services. Devices may name any others. */
const maxKept = 32;

/** Keeps a transport for each push service in use. Closes the least recently used one when there are too many. */
function createPushOrigins(open: (origin: string) => Transport) {
  const known = new Map<string, { readonly transport: Transport; users: number }>();
  const closing = new Set<Promise<void>>();

  function evict(): void {
    for (const [origin, { transport, users }] of known) {
      if (known.size <= maxKept) return;
      if (users > 0) continue;
      known.delete(origin);
      const done = transport.close().finally(() => closing.delete(done));
      closing.add(done);
    }
  }

  return {
    /** Calls `send` with the transport to an origin, which stays open at least until `send` is done. */
    async use<Result>(origin: string, send: (transport: Transport) => Promise<Result>): Promise<Result> {
      const entry = known.get(origin) ?? { transport: open(origin), users: 0 };
      known.delete(origin);
      known.set(origin, entry);
      entry.users++;
      evict();
      try {
        return await send(entry.transport);
      } finally {
        entry.users--;
      }
    },
    async close(): Promise<void> {
      await Promise.all([...closing, ...[...known.values()].map(({ transport }) => transport.close())]);
    },
  };
}
