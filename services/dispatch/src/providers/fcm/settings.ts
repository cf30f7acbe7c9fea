import { FcmSettings } from "@herald/contracts";
import { z } from "zod";
import {
  elsewhereProblems,
  elsewhereView,
  parsePrivateKey,
  parseSettings,
  refuseProblems,
  type SettingsRules,
  unreadableKey,
} from "../settings-problems.ts";

/** The fields that Herald needs of Firebase's service account JSON. Other fields are kept unchanged. */
export const ServiceAccount = z.looseObject({
  type: z.literal("service_account", 'must be "service_account": put the JSON of a service account\'s key'),
  project_id: z.string().regex(/^[a-z0-9][a-z0-9.:-]{3,99}$/, "must be the id of a Firebase project"),
  client_email: z.string().regex(/^[^@\s]{1,200}@[^@\s]{1,200}$/, "must be the service account's e-mail address"),
  private_key: z.string().refine((pem) => parsePrivateKey(pem)?.asymmetricKeyType === "rsa", {
    error: ({ input }) => unreadableKey(String(input), "is not an RSA private key in PEM form, as Firebase gives it"),
  }),
  private_key_id: z.string().optional(),
});
export type ServiceAccount = z.infer<typeof ServiceAccount>;

/** The end of the addresses of all service accounts. */
const accounts = ".gserviceaccount.com";

const CheckableSettings = FcmSettings.extend({ service_account: ServiceAccount });

/** Checks new settings: that they contain a service account whose key parses. @throws HeraldError */
export function checkFcmSettings(input: unknown, rules: SettingsRules): FcmSettings {
  const settings = parseSettings(CheckableSettings, input);
  const { service_account: account, endpoint } = settings;
  const isGoogles = endpoint !== undefined || account.client_email.endsWith(accounts);
  refuseProblems([
    ...(isGoogles ? [] : [`service_account.client_email: must be a service account's, which ends with ${accounts}`]),
    ...elsewhereProblems(settings, rules),
  ]);
  return settings;
}

/** The part of the settings that may be shown: the account and the key's id, never the key. */
export function fcmPublicView({ service_account, ...elsewhere }: FcmSettings): Record<string, string> {
  const { project_id, client_email, private_key_id } = ServiceAccount.parse(service_account);
  return {
    project_id,
    client_email,
    ...(private_key_id === undefined ? {} : { private_key_id }),
    ...elsewhereView(elsewhere),
  };
}
