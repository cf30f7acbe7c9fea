import type { ProviderView, Webhook } from "@herald/client";
import { stringify } from "yaml";
import type { ProjectState } from "./diff.ts";

/** Shown in a provider's settings, but not set: they follow from a key or a certificate. */
const derived: ReadonlySet<string> = new Set(["certificate_subject", "certificate_sha256", "expires_at", "keys"]);

/** The secrets of a provider that Herald never shows, by the names that their files usually have. */
const secretsOf = ({ provider, settings }: ProviderView): Record<string, unknown> => {
  const ca = settings.ca === undefined ? {} : { ca: { file: `${provider}-ca.pem` } };
  if (provider === "fcm") return { service_account: { file: "service-account.json" }, ...ca };
  // Without a key Web Push keeps its own.
  if (provider !== "apns") return ca;
  if (settings.certificate_sha256 === undefined)
    return { private_key: { file: `AuthKey_${settings.key_id}.p8` }, ...ca };
  return { certificate: { file: "apns-certificate.pem" }, private_key: { file: "apns-certificate-key.pem" }, ...ca };
};

const settingsOf = (view: ProviderView): Record<string, unknown> => {
  // The service account has all of it.
  const shown = view.provider === "fcm" ? { endpoint: view.settings.endpoint } : view.settings;
  const { public_key: _, ...own } = Object.fromEntries(Object.entries(shown).filter(([name]) => !derived.has(name)));
  return { ...own, ...secretsOf(view) };
};

const webhookOf = ({ url, events, description, enabled }: Webhook) => ({
  url,
  ...(events && { events }),
  ...(description && { description }),
  ...(!enabled && { enabled }),
});

/** Of tokens with the same name the last one: a file names each once. */
const tokensOf = (tokens: ProjectState["tokens"]) =>
  [...new Map(tokens.map((token) => [token.name, token])).values()].map(({ name, scopes, expires_at }) => ({
    name,
    scopes,
    ...(expires_at && { expires_at }),
  }));

/** The project file of a state. `files`: those that it names for secrets, and that Herald cannot write. */
export const toProjectFile = ({
  project,
  limits,
  kinds,
  providers,
  tokens,
  webhooks,
}: Omit<ProjectState, "written">) => {
  const { id: _, created_at: __, paused: ___, ...settings } = project ?? {};
  const own = limits.filter(({ limit, default: usual }) => limit !== usual);
  const file = {
    herald: 1,
    project: settings,
    ...(own.length > 0 && { limits: Object.fromEntries(own.map((one) => [one.name, one.limit])) }),
    ...(kinds.length > 0 && { kinds }),
    providers: Object.fromEntries(providers.map((view) => [view.provider, settingsOf(view)])),
    tokens: tokensOf(tokens),
    webhooks: webhooks.map(webhookOf),
  };
  const files = Object.values(file.providers).flatMap((settings) =>
    Object.values(settings).flatMap((value) => {
      const { file: name } = (value ?? {}) as { readonly file?: string };
      return name === undefined ? [] : [name];
    }),
  );
  return { text: stringify(file, { lineWidth: 0 }), files };
};
