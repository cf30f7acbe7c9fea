import { createPublicKey } from "node:crypto";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type ApnsSettings, Herald, HeraldAdmin, HeraldError } from "@herald/client";
import type { ProviderKeys } from "./secrets.ts";

/** `identitySecret` signs its user tokens. */
export type DemoProject = { id: string; token: string; identitySecret: string };
export type SimulatorAddresses = { apns: string; fcm: string; webpush: string; control: string; ca: string };

/** A service that has just become ready may still be reconnecting to the broker: half a minute with the waits in between. */
const maxRetries = 6;

/** The project of the printed commands: the one of the last start when it is still known, else a new one. */
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
  const kept = await readFile(file, "utf8").then(
    (text) => JSON.parse(text) as DemoProject,
    () => undefined,
  );
  const project = kept && (await isKnown(gateway, kept)) ? kept : await makeProject(gateway, admin);
  // One that an earlier version made has none.
  project.identitySecret ??= await makeIdentitySecret(admin, project.id);
  // At each start: the simulators' ports may have moved.
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

/** Whether the token of the last start is still one. */
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
  // Without it a device could only subscribe to topics that a backend made.
  await new Herald({ url: gateway, token, maxRetries }).topics.create({ name: "news" });
  return { id: project.id, token, identitySecret: await makeIdentitySecret(admin, project.id) };
}

const makeIdentitySecret = async (admin: HeraldAdmin, projectId: string): Promise<string> =>
  (await admin.identityKeys.create(projectId)).secret ?? "";

/** As Apple knows a key that it has given out, the simulator knows this one: another in its place is refused. */
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

/** Without an account at Apple or Google. */
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
  webpush: { subject: "mailto:demo@example.com" }, // its keys are made when they are absent, and stay
});
