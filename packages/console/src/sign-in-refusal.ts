import { problemTexts } from "./api/problem-texts.ts";

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

const failed = { title: "The sign-in failed", next: "Try again." };

/** Why a sign-in failed, by the name that is in the address: `identity-provider-refused.client`. */
export const signInRefusal = (name: string): string => {
  const [slug = "", reason = ""] = name.split(".");
  const { title, next } = (Object.hasOwn(problemTexts, slug) && problemTexts[slug]) || failed;
  return [`${title}.`, next, reasons.get(reason)].filter(Boolean).join(" ");
};
