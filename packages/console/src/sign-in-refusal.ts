const refusals = new Map(
  Object.entries({
    "sign-in-expired": "The sign-in took too long or was begun in another tab. Sign in again.",
    "identity-token-invalid":
      "Herald could not verify what your company's identity provider said. Tell an admin of Herald.",
    "sign-in-not-permitted": "You may not use Herald yet. Ask an admin of Herald for a role or a group.",
    "identity-provider-unavailable": "Your company's identity provider does not answer. Try again in a minute.",
    "identity-provider-refused": "Your company's identity provider refuses Herald. Tell an admin of Herald.",
  }),
);
/** For the admin of Herald. */
const reasons = new Map(
  Object.entries({
    audience: "The identity token is for another client than HERALD_GATEWAY_OIDC_CLIENT_ID.",
    client: "It does not accept HERALD_GATEWAY_OIDC_CLIENT_ID or HERALD_GATEWAY_OIDC_CLIENT_SECRET.",
    clock: "The identity token is not valid at this time: the clock of the gateway or of the provider is wrong.",
    flow: "It does not let Herald's client use the authorization code flow.",
    issuer: "The identity token is of another issuer than HERALD_GATEWAY_OIDC_ISSUER.",
    nonce: "The identity token belongs to another sign-in.",
    redirect:
      "It does not accept the redirect address of Herald: its client must have <HERALD_GATEWAY_OIDC_URL>/admin/v1/sign-in/callback.",
    scope: "It does not offer a scope of HERALD_GATEWAY_OIDC_SCOPES.",
    signature: "The identity token is not signed by a key that the provider publishes.",
  }),
);

/** Why a sign-in failed, by the name that is in the address: `identity-provider-refused.client`. */
export const signInRefusal = (name: string): string => {
  const [slug = "", reason = ""] = name.split(".");
  return [refusals.get(slug) ?? "The sign-in failed. Try again.", reasons.get(reason)].filter(Boolean).join(" ");
};
