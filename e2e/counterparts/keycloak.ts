import { mkdtemp } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { freePort, removeAtExit, startProcess } from "@herald/provision";
import { eventually } from "@herald/testing";

const startTimeoutMs = 600_000; // it builds itself first, which takes a busy machine minutes
const password = "only-for-this-test";
const realm = "company";

type Call = { readonly body?: unknown; readonly form?: Readonly<Record<string, string>> };

/** Names of people, and their groups. Everyone's password is `secret`. */
type People = Readonly<
  Record<string, { readonly first: string; readonly last: string; readonly groups: readonly string[] }>
>;

/** Starts the Keycloak of a folder with a realm as docs/how-to/sign-in-with-your-company.md sets it up: a client `herald` with a group membership mapper. */
export const startKeycloak = async (home: string, clientSecret: string, people: People) => {
  const logs = await mkdtemp(join(tmpdir(), "herald-keycloak-log-"));
  removeAtExit(logs);
  const [port, management] = [await freePort(), await freePort()];
  const url = `http://127.0.0.1:${port}`;
  const start = () =>
    startProcess({
      ...{ name: "Keycloak", command: join(home, "bin/kc.sh"), cwd: home },
      args: ["start-dev", "--http-host=127.0.0.1", `--http-port=${port}`, `--http-management-port=${management}`],
      env: {
        ...process.env,
        ...{ KC_BOOTSTRAP_ADMIN_USERNAME: "admin", KC_BOOTSTRAP_ADMIN_PASSWORD: password },
        JAVA_OPTS_KC_HEAP: "-Xms128m -Xmx700m",
      },
      ...{ stopSignal: "SIGTERM" as const, stopTimeoutMs: 30_000, output: { file: join(logs, "keycloak.log") } },
    });
  /** The script may end before the Java that it started, which is in its process group. */
  const stop = async () => {
    await running.stop();
    try {
      process.kill(-running.pid, "SIGKILL");
    } catch {
      // All have ended.
    }
  };
  const send = async (method: string, path: string, { body, form }: Call = {}, token = "") => {
    const type = form ? "application/x-www-form-urlencoded" : "application/json";
    const response = await fetch(url + path, {
      method,
      headers: { "content-type": type, ...(token && { authorization: `Bearer ${token}` }) },
      ...(form && { body: new URLSearchParams(form) }),
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
    const text = await response.text();
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`);
    return text === "" ? undefined : JSON.parse(text);
  };
  /** A token lasts for a minute, and checking a password takes Keycloak a while. */
  let admin = { token: "", until: 0 };
  /** Calls Keycloak's admin API. */
  const call = async (method: string, path: string, body?: unknown) => {
    if (Date.now() > admin.until) {
      const form = { grant_type: "password", client_id: "admin-cli", username: "admin", password };
      const { access_token: token } = await send("POST", "/realms/master/protocol/openid-connect/token", { form });
      admin = { token, until: Date.now() + 30_000 };
    }
    return send(method, `/admin/realms${path}`, { body }, admin.token);
  };
  const running = await start();
  const ready = () => eventually(() => send("GET", "/realms/master"), { timeoutMs: startTimeoutMs });
  try {
    await ready();
    await call("POST", "", {
      ...{ realm, enabled: true, sslRequired: "none" },
      groups: [...new Set(Object.values(people).flatMap(({ groups }) => groups))].map((name) => ({ name })),
      users: Object.entries(people).map(([username, { first, last, groups }]) => ({
        ...{ username, enabled: true, firstName: first, lastName: last, email: `${username}@example.com` },
        ...{ emailVerified: true, groups, credentials: [{ type: "password", value: "secret", temporary: false }] },
      })),
      clients: [
        {
          ...{ clientId: "herald", protocol: "openid-connect", publicClient: false, secret: clientSecret },
          ...{ standardFlowEnabled: true, implicitFlowEnabled: false, directAccessGrantsEnabled: false },
          protocolMappers: [
            {
              ...{ name: "groups", protocol: "openid-connect", protocolMapper: "oidc-group-membership-mapper" },
              config: { "claim.name": "groups", "full.path": "false", "id.token.claim": "true" },
            },
          ],
        },
      ],
    });
  } catch (error) {
    await stop();
    throw error;
  }
  const ofRealm = (method: string, path: string, body?: unknown) => call(method, `/${realm}${path}`, body);
  /** Changes the client `herald`. */
  const changeClient = async (change: object) => {
    const [client] = await ofRealm("GET", "/clients?clientId=herald");
    await ofRealm("PUT", `/clients/${client.id}`, { ...client, ...change });
  };
  return {
    issuer: `${url}/realms/${realm}`,
    logs,
    /** Calls the admin API of the realm. */
    call: ofRealm,
    changeClient,
    /** The addresses that the page on sign-in names. */
    redirectTo: (origin: string) =>
      changeClient({
        redirectUris: [`${origin}/admin/v1/sign-in/callback`],
        attributes: { "post.logout.redirect.uris": `${origin}/console/` },
      }),
    stop,
  };
};
export type Keycloak = Awaited<ReturnType<typeof startKeycloak>>;
