import { randomBytes } from "node:crypto";
import { readFile, writeFile } from "node:fs/promises";
import { request } from "node:https";
import { join } from "node:path";
import { freePort, startProcess } from "@herald/provision";
import { eventually } from "@herald/testing";
import { stringify } from "yaml";
import { type ClusterPrograms, clusterPrograms } from "./cluster-programs.ts";
import { run } from "./helm.ts";

/** An API server alone: it admits, validates and stores objects, and nothing acts on them. */

const startTimeoutMs = 120_000;

export type Answer = { readonly status: number; readonly body: string; readonly warning: string };
export type Cluster = {
  /** For Helm. */
  readonly kubeconfig: string;
  /** The address of the registry, `127.0.0.1:<port>`. */
  readonly registry: string;
  call(method: string, path: string, body?: unknown, type?: string): Promise<Answer>;
  /** Every object of a namespace, as `Kind name`. */
  objectsIn(namespace: string): Promise<string[]>;
  stop(): Promise<void>;
};

type Resource = { resource: string; scope: string; verbs: string[]; responseKind: { kind: string } };
type Discovery = { items: { metadata: { name?: string }; versions: { version: string; resources: Resource[] }[] }[] };
type Established = { conditions: { type: string; status: string }[] };
const aggregated = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

/** Programs that have started, ended in reverse order. */
const startPrograms = async (programs: ClusterPrograms, folder: string, token: string) => {
  const [client, peer, port, registryPort] = [await freePort(), await freePort(), await freePort(), await freePort()];
  const stops: (() => Promise<unknown>)[] = [];
  const start = async (name: string, command: string, args: string[], env = {}) => {
    const file = join(folder, `${name}.log`);
    const started = await startProcess({
      ...{ name, command, args, cwd: folder, env: { ...process.env, ...env } },
      ...{ stopSignal: "SIGTERM", stopTimeoutMs: 10_000, output: { file } },
    });
    stops.unshift(() => started.stop());
  };
  const stop = async () => {
    for (const one of stops) await one();
  };
  const at = (number: number) => `http://127.0.0.1:${number}`;
  await start("etcd", programs.etcd, [
    ...["--data-dir", join(folder, "etcd"), "--listen-client-urls", at(client), "--advertise-client-urls", at(client)],
    ...[
      "--listen-peer-urls",
      at(peer),
      "--initial-advertise-peer-urls",
      at(peer),
      "--initial-cluster",
      `default=${at(peer)}`,
    ],
  ]);
  const key = join(folder, "account.key");
  await run("openssl", ["genrsa", "-out", key, "2048"], process.env);
  await writeFile(join(folder, "tokens"), `${token},admin,admin,system:masters\n`);
  await start("kube-apiserver", programs.apiServer, [
    ...["--etcd-servers", at(client), "--bind-address", "127.0.0.1", "--secure-port", String(port)],
    ...["--cert-dir", join(folder, "certificates"), "--token-auth-file", join(folder, "tokens")],
    ...["--authorization-mode", "RBAC", "--service-cluster-ip-range", "10.0.0.0/24"],
    ...["--service-account-issuer", "https://kubernetes.default.svc"],
    ...["--service-account-key-file", key, "--service-account-signing-key-file", key],
  ]);
  const configuration = join(folder, "registry.yml");
  const storage = { inmemory: {} };
  await writeFile(configuration, stringify({ version: 0.1, storage, http: { addr: `127.0.0.1:${registryPort}` } }));
  await start("registry", programs.registry, ["serve", configuration], { OTEL_TRACES_EXPORTER: "none" });
  return { url: `https://127.0.0.1:${port}`, registry: `127.0.0.1:${registryPort}`, stop };
};

/** Starts etcd, the API server and a registry of charts, and adds the kinds of KEDA, the Gateway API and the Prometheus operator. */
export const startCluster = async (folder: string): Promise<Cluster> => {
  const programs = await clusterPrograms();
  const token = randomBytes(24).toString("hex");
  const { url, registry, stop } = await startPrograms(programs, folder, token);
  const certificate = join(folder, "certificates/apiserver.crt");
  const call = async (method: string, path: string, body?: unknown, type = "application/json"): Promise<Answer> => {
    const ca = await readFile(certificate);
    const text = typeof body === "string" ? body : JSON.stringify(body);
    const headers = {
      authorization: `Bearer ${token}`,
      "content-type": type,
      accept: path === "/apis" || path === "/api" ? aggregated : "*/*",
    };
    return new Promise((resolve, reject) => {
      const sent = request(`${url}${path}`, { method, ca, headers, servername: "kubernetes" }, (response) => {
        let answer = "";
        response.setEncoding("utf8").on("data", (chunk) => (answer += chunk));
        response.on("end", () =>
          resolve({ status: response.statusCode ?? 0, body: answer, warning: String(response.headers.warning ?? "") }),
        );
      });
      sent.on("error", reject).end(body === undefined ? undefined : text);
    });
  };
  const ready = async (path: string) => {
    const { status, body } = await call("GET", path);
    if (status !== 200) throw new Error(`${path}: ${status} ${body}`);
  };
  try {
    await eventually(() => ready("/readyz"), { timeoutMs: startTimeoutMs });
    for (const kind of programs.foreignKinds) {
      const [, name = ""] = /^ {2}name: (\S+)$/m.exec(kind) ?? [];
      const path = `/apis/apiextensions.k8s.io/v1/customresourcedefinitions/${name}?fieldManager=test`;
      const { status, body } = await call("PATCH", path, kind, "application/apply-patch+yaml");
      if (status >= 300) throw new Error(`${name}: ${status} ${body}`);
      await eventually(
        async () => {
          const { status: state } = JSON.parse((await call("GET", path)).body) as { status?: Established };
          if (!state?.conditions.some((one) => one.type === "Established" && one.status === "True"))
            throw new Error(`${name} is not served yet`);
        },
        { timeoutMs: startTimeoutMs },
      );
    }
  } catch (error) {
    await stop();
    throw error;
  }
  const kubeconfig = join(folder, "kubeconfig");
  const cluster = { server: url, "certificate-authority": certificate, "tls-server-name": "kubernetes" };
  await writeFile(
    kubeconfig,
    stringify({
      ...{ apiVersion: "v1", kind: "Config", "current-context": "test" },
      clusters: [{ name: "test", cluster }],
      users: [{ name: "test", user: { token } }],
      contexts: [{ name: "test", context: { cluster: "test", user: "test" } }],
    }),
    { mode: 0o600 },
  );
  const objectsIn = async (namespace: string): Promise<string[]> => {
    const found: string[] = [];
    for (const base of ["/api", "/apis"]) {
      const { items } = JSON.parse((await call("GET", base)).body) as Discovery;
      for (const { metadata, versions } of items) {
        const [preferred] = versions;
        const listed =
          preferred?.resources.filter(({ scope, verbs }) => scope === "Namespaced" && verbs.includes("list")) ?? [];
        for (const { resource, responseKind } of listed) {
          const group = metadata.name ? `/apis/${metadata.name}` : base;
          const { body } = await call("GET", `${group}/${preferred?.version}/namespaces/${namespace}/${resource}`);
          const { items: objects = [] } = JSON.parse(body) as { items?: { metadata: { name: string } }[] };
          found.push(...objects.map((object) => `${responseKind.kind} ${object.metadata.name}`));
        }
      }
    }
    return found.toSorted();
  };
  return { kubeconfig, registry, call, objectsIn, stop };
};
