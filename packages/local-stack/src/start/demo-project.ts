import { createPublicKey } from "node:crypto";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type ApnsSettings, Herald, HeraldAdmin, HeraldError } from "@herald/client";
import type { ProviderKeys } from "./secrets.ts";

/** `identitySecret` signs its user tokens. */
export type DemoProject = { id: string; token: string; identitySecret: string };
export type SimulatorAddresses = { apns: string; fcm: string; webpush: string; control: string; ca: string };

export const simulatorAddresses = async (control: string): Promise<SimulatorAddresses> =>
  (await (await fetch(`${control}/info`)).json()) as SimulatorAddresses;

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
  await registerApnsKey(simulators.control, settings.apns);
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
  const { secret = "" } = await admin.identityKeys.create(project.id);
  return { id: project.id, token, identitySecret: secret };
}

/** Registers the key with the simulator, as Apple knows the keys that it has issued. The simulator refuses any other key. */
async function registerApnsKey(
  control: string,
  { key_id, team_id, private_key }: ReturnType<typeof demoSettings>["apns"],
) {
  const publicKey = createPublicKey(private_key).export({ type: "spki", format: "pem" });
  const url = `${control}/apns/keys`;
  const body = JSON.stringify([{ keyId: key_id, teamId: team_id, publicKey }]);
  const response = await fetch(url, { method: "PUT", body });
  if (!response.ok) throw new Error(`PUT ${url} answered ${response.status}: ${await response.text()}`);
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
