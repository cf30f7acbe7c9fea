import { generateKeyPairSync } from "node:crypto";
import {
  type ApnsSettings,
  type FcmSettings,
  type Provider,
  providerSettings,
  type WebPushSettings,
} from "@herald/contracts";
import type { RunningHerald } from "@herald/local-stack";

type Addresses = RunningHerald["local"]["simulators"];

const apnsKey = generateKeyPairSync("ec", { namedCurve: "P-256" }).privateKey;
const fcmKey = generateKeyPairSync("rsa", { modulusLength: 2048 }).privateKey;
const pem = (key: typeof apnsKey) => key.export({ type: "pkcs8", format: "pem" }).toString();

/** A service account in Firebase's format. Scripts of the simulator's token endpoint match the e-mail address. */
export const serviceAccount = (clientEmail = "e2e@herald-e2e.iam.gserviceaccount.com") => ({
  type: "service_account",
  project_id: "herald-e2e",
  private_key_id: "e2e",
  private_key: pem(fcmKey),
  client_email: clientEmail,
});

type Settings = { apns: ApnsSettings; fcm: FcmSettings; webpush: WebPushSettings };

/** Settings for sending to the simulators; `change` overrides some of them. */
export function settingsFor(
  provider: Provider,
  { ca, ...addresses }: Addresses,
  change: Record<string, unknown> = {},
): Settings[Provider] {
  const own: Record<Provider, object> = {
    apns: {
      key_id: "E2EKEY0001",
      team_id: "E2ETEAM001",
      private_key: pem(apnsKey),
      bundle_id: "com.example.e2e",
      environment: "sandbox",
    },
    fcm: { service_account: serviceAccount() },
    webpush: { subject: "mailto:e2e@example.com" },
  };
  return providerSettings[provider].parse({ ...own[provider], endpoint: addresses[provider], ca, ...change });
}
