import { createPrivateKey } from "node:crypto";
import { FcmSettings } from "@herald/contracts";
import { z } from "zod";
import {
  type CheckedSettings,
  elsewhereProblems,
  elsewhereView,
  type SettingsRules,
  schemaProblems,
} from "../settings-problems.ts";

/** What Herald needs of the JSON that Firebase gives; the rest stays as it is. */
export const ServiceAccount = z.looseObject({
  type: z.literal("service_account", 'must be "service_account": put the JSON of a service account\'s key'),
  project_id: z.string().regex(/^[a-z0-9][a-z0-9.:-]{3,99}$/, "must be the id of a Firebase project"),
  client_email: z.string().regex(/^[^@\s]{1,200}@[^@\s]{1,200}$/, "must be the service account's e-mail address"),
  private_key: z.string().refine(isRsaKey, "is not an RSA private key in PEM form, as Firebase gives it"),
  private_key_id: z.string().optional(),
});
export type ServiceAccount = z.infer<typeof ServiceAccount>;

const CheckableSettings = FcmSettings.extend({ service_account: ServiceAccount });

/** Checks what an operator puts: that it is a service account whose key parses. */
export function checkFcmSettings(input: unknown, rules: SettingsRules): CheckedSettings<FcmSettings> {
  const parsed = CheckableSettings.safeParse(input);
  if (!parsed.success) return { ok: false, problems: schemaProblems(parsed.error) };
  const problems = elsewhereProblems(parsed.data, rules);
  return problems.length > 0 ? { ok: false, problems } : { ok: true, settings: parsed.data };
}

/** What may be shown: whose key, and which; never the key. */
export function fcmPublicView({ service_account, ...elsewhere }: FcmSettings): Record<string, string> {
  const { project_id, client_email, private_key_id } = ServiceAccount.parse(service_account);
  return {
    project_id,
    client_email,
    ...(private_key_id === undefined ? {} : { private_key_id }),
    ...elsewhereView(elsewhere),
  };
}

function isRsaKey(pem: string): boolean {
  try {
    return createPrivateKey(pem).asymmetricKeyType === "rsa";
  } catch {
    return false;
  }
}
