import { createPublicKey } from "node:crypto";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type ApnsSettings, Herald, HeraldAdmin, HeraldError } from "@herald/client";
import type { ProviderKeys } from "./provider-keys.ts";

/** `identitySecret` signs its user tokens. */
export type DemoProject = { id: string; token: string; identitySecret: string };
export type SimulatorAddresses = { apns: string; fcm: string; webpush: string; control: string; ca: string };

/** Calls the control server of the simulators. Throws if it refuses. */
export async function callSimulators<Answer>(control: string, route: string, body?: unknown): Promise<Answer> {
  const [method = "", path = ""] = route.split(" ");
  const response = await fetch(control + path, { method, ...(body !== undefined && { body: JSON.stringify(body) }) });
  const text = await response.text();
  if (!response.ok) throw new Error(`${route} of ${control} answered ${response.status}: ${text}`);
  return text && JSON.parse(text);
}

export const simulatorAddresses = (control: string) => callSimulators<SimulatorAddresses>(control, "GET /info");

/** A service that has just become ready may still be reconnecting to the broker. With the pauses, six retries take half a minute. */
const maxRetries = 6;

/** The project of the printed commands: the last start's project if it still exists, else a new one. */
export async function ensureDemoProject(options: {
  dataDir: string;
  gateway: string;
  adminToken: string;
  keys: ProviderKeys;
  simulators: SimulatorAddresses;
}): Promise<DemoProject> {
  const { dataDir, gateway, adminToken, keys, simulators } = options;
  const file = join(dataDir, "project.json");
  const admin = new HeraldAdmin({ url: gateway, token: adminToken, maxRetries });
  const kept: DemoProject | undefined = await readFile(file, "utf8").then(JSON.parse, () => undefined);
  const project = kept && (await isKnown(gateway, kept)) ? kept : await makeProject(gateway, admin);
  // Repeat this at each start, because the simulators' ports may have changed.
  const settings = demoSettings(keys);
  // Apple knows the keys that it has issued. The simulator refuses any other key.
  const { key_id: keyId, team_id: teamId, private_key } = settings.apns;
  const publicKey = createPublicKey(private_key).export({ type: "spki", format: "pem" });
  await callSimulators(simulators.control, "PUT /apns/keys", [{ keyId, teamId, publicKey }]);
  await Promise.all(
    (["apns", "fcm", "webpush"] as const).map((provider) =>
      admin.providers.set(project.id, provider, {
        ...settings[provider],
        endpoint: simulators[provider],
        ca: simulators.ca,
      } as ApnsSettings),
    ),
  );
  await writeFile(file, JSON.stringify(project), { mode: 0o600 });
  return project;
}

/** Whether the token of the last start is still valid. */
const isKnown = async (gateway: string, { token }: DemoProject): Promise<boolean> => {
  try {
    await new Herald({ url: gateway, token, maxRetries }).devices.list({ perPage: 1 }).page();
    return true;
  } catch (error) {
    if (error instanceof HeraldError && error.status === 401) return false;
    throw error;
  }
};

async function makeProject(gateway: string, admin: HeraldAdmin): Promise<DemoProject> {
  const { project, token = "" } = await admin.projects.create({ name: "Demo" });
  // Devices can subscribe only to topics that a backend has created.
  await new Herald({ url: gateway, token, maxRetries }).topics.create({ name: "news" });
  await admin.kinds.put(project.id, "order-shipped", { title: "Your orders" });
  await admin.kinds.put(project.id, "offers", { title: "Offers", frequency_cap: { count: 2, per: "day" } });
  const { secret = "" } = await admin.identityKeys.create(project.id);
  return { id: project.id, token, identitySecret: secret };
}

/** Settings that need no account at Apple or Google. */
const demoSettings = ({ apnsKey, fcmKey }: ProviderKeys) => ({
  apns: {
    key_id: "HERALDDEMO",
    team_id: "LOCALSTACK",
    private_key: apnsKey,
    bundle_id: "com.example.herald",
    environment: "sandbox",
  },
  fcm: {
    service_account: {
      type: "service_account",
      project_id: "herald-demo",
      private_key: fcmKey,
      client_email: "demo@herald-demo.iam.gserviceaccount.com",
    },
  },
  webpush: { subject: "mailto:demo@example.com" }, // Herald creates missing VAPID keys and keeps them
});
