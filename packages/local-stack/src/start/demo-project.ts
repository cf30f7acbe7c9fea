import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import type { ProviderKeys } from "./secrets.ts";

/** `identitySecret` signs its user tokens. */
export type DemoProject = { id: string; token: string; identitySecret: string };
export type SimulatorAddresses = { apns: string; fcm: string; webpush: string; control: string; ca: string };

/** A service that has just become ready may still be reconnecting to the broker. */
const tryForMs = 20_000;

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
  const admin = `${gateway}/admin/v1/projects`;
  const kept = await readFile(file, "utf8").then(
    (text) => JSON.parse(text) as DemoProject,
    () => undefined,
  );
  const known = kept && (await call("GET", `${gateway}/api/v1/devices?per_page=1`, kept.token)).ok;
  const project = known ? kept : await makeProject(admin, adminToken);
  // One that an earlier version made has none.
  project.identitySecret ??= await makeIdentitySecret(admin, adminToken, project.id);
  // At each start: the simulators' ports may have moved.
  const settings = demoSettings(keys);
  await Promise.all(
    (["apns", "fcm", "webpush"] as const).map((provider) =>
      expectOk("PUT", `${admin}/${project.id}/providers/${provider}`, adminToken, {
        ...settings[provider],
        endpoint: simulators[provider],
        ca: simulators.ca,
      }),
    ),
  );
  await writeFile(file, JSON.stringify(project), { mode: 0o600 });
  return project;
}

async function makeProject(admin: string, adminToken: string): Promise<DemoProject> {
  const made = await expectOk("POST", admin, adminToken, { project: { name: "Demo" } });
  const { data, token } = made as { data: { id: string }; token: string };
  // Without it a device could only subscribe to topics that a backend made.
  await expectOk("POST", `${admin.replace("/admin/v1/projects", "/api/v1/topics")}`, token, {
    topic: { name: "news" },
  });
  return { id: data.id, token, identitySecret: await makeIdentitySecret(admin, adminToken, data.id) };
}

async function makeIdentitySecret(admin: string, adminToken: string, projectId: string): Promise<string> {
  const { secret } = (await expectOk("POST", `${admin}/${projectId}/identity-keys`, adminToken, {})) as {
    secret: string;
  };
  return secret;
}

/** Without an account at Apple or Google: the simulators take any that is well formed. */
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

type Answer = { ok: boolean; status: number; text: string };

async function expectOk(method: string, url: string, token: string, body: unknown): Promise<unknown> {
  const answer = await call(method, url, token, body);
  if (!answer.ok) throw new Error(`${method} ${url} answered ${answer.status}: ${answer.text}`);
  return JSON.parse(answer.text);
}

/** Waits out what passes by itself: a dependency that is just coming up is a 503. */
async function call(method: string, url: string, token: string, body?: unknown): Promise<Answer> {
  const deadline = Date.now() + tryForMs;
  for (;;) {
    const response = await fetch(url, {
      method,
      headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const answer = { ok: response.ok, status: response.status, text: await response.text() };
    if (answer.status !== 503 || Date.now() > deadline) return answer;
    await delay(250);
  }
}
