import { checkPublicEndpoint } from "@herald/kit";

/**
 * The push services of the browsers. An endpoint is a URL that a stranger gave us, so by default nothing else is called;
 * a name stands for its subdomains too.
 */
export const knownPushServices: readonly string[] = [
  "fcm.googleapis.com",
  "jmt17.google.com",
  "push.services.mozilla.com",
  "notify.windows.com",
  "push.apple.com",
];

const isUnder = (hosts: readonly string[], hostname: string): boolean =>
  hosts.some((host) => hostname === host || hostname.endsWith(`.${host}`));

/** Whether an origin, as a subscription spells it, is one of the browsers' push services. */
export const isKnownPushService = (origin: string): boolean =>
  URL.canParse(origin) && isUnder(knownPushServices, new URL(origin).hostname);

type EndpointRules = {
  /** `any`: the operator lets subscriptions name every public host, as UnifiedPush needs. */
  readonly hosts: readonly string[] | "any";
  /** The project's own `endpoint`: to that origin no rule applies. */
  readonly exemptOrigin?: string | undefined;
};

type CheckedEndpoint =
  | { readonly ok: true; readonly origin: string; readonly path: string; readonly exempt: boolean }
  | { readonly ok: false; readonly problem: string };

/** What can be told from the URL alone; where its name leads is checked at connect. */
export function checkEndpoint(endpoint: string, { hosts, exemptOrigin }: EndpointRules): CheckedEndpoint {
  const url = URL.canParse(endpoint) ? new URL(endpoint) : undefined;
  if (url !== undefined && url.origin === exemptOrigin && url.username === "" && url.password === "")
    return { ok: true, origin: url.origin, path: `${url.pathname}${url.search}`, exempt: true };
  const checked = checkPublicEndpoint(endpoint);
  if (!checked.ok) return checked;
  const { origin, hostname, path } = checked;
  if (hosts !== "any" && !isUnder(hosts, hostname))
    return { ok: false, problem: "the endpoint's host is not a known push service" };
  return { ok: true, origin, path, exempt: false };
}
