import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { cacheFolder, findGo, provision, runCommand } from "@herald/provision";
import { goProgram } from "../test-tools.ts";
import { progress } from "./helm.ts";

/** Compiles the API server of Kubernetes, its etcd and a registry of charts, and finds the kinds of others in their Go modules. */

const kubernetes = { module: "k8s.io/kubernetes", version: "v1.36.3", staging: "v0.36.3" };
const etcd = { module: "go.etcd.io/etcd/server/v3", version: "v3.6.8" };
const registry = "github.com/distribution/distribution/v3/cmd/registry@v3.1.2";
/** Where the kinds are that the chart uses: module, folder, and the names of their files. */
const foreignKinds = [
  ["github.com/kedacore/keda/v2@v2.21.0", "config/crd/bases", ["keda.sh_scaledobjects"]],
  ["sigs.k8s.io/gateway-api@v1.6.3", "config/crd/standard", ["gateway.networking.k8s.io_httproutes"]],
  [
    "github.com/prometheus-operator/prometheus-operator@v0.85.0",
    "example/prometheus-operator-crd",
    ["monitoring.coreos.com_servicemonitors", "monitoring.coreos.com_prometheusrules"],
  ],
] as const;
const compileTimeoutMs = 3_600_000;

const go = async (args: readonly string[], cwd?: string, flags = ""): Promise<string> => {
  const env = { ...process.env, CGO_ENABLED: "0", GOFLAGS: `-buildvcs=false ${flags}`.trim() };
  const { ok, stdout, why } = await runCommand(await findGo(process.env), args, {
    env,
    timeoutMs: compileTimeoutMs,
    ...(cwd === undefined ? {} : { cwd }),
  });
  if (!ok) throw new Error(`go ${args.join(" ")}: ${why}`);
  return stdout;
};

/** The folder of a Go module's source, downloaded once for this user. */
const moduleFolder = async (module: string): Promise<string> =>
  (JSON.parse(await go(["mod", "download", "-json", module])) as { Dir: string }).Dir;

/**
 * Kubernetes replaces its staging modules by folders of its own tree, which its module does not contain. So the program is built from a
 * module that replaces them by their published versions.
 */
const mainModule = async (): Promise<string> => {
  const own = await readFile(join(await moduleFolder(`${kubernetes.module}@${kubernetes.version}`), "go.mod"), "utf8");
  const staging = [...own.matchAll(/^\t(k8s\.io\/[a-z-]+) v0\.0\.0$/gm)].map(([, name]) => name);
  return [
    "module herald-chart-cluster",
    ...(own.match(/^(go|godebug) .*$/gm) ?? []),
    ...[kubernetes, etcd].map(({ module, version }) => `require ${module} ${version}`),
    ...staging.map((name) => `replace ${name} => ${name} ${kubernetes.staging}`),
    "",
  ].join("\n");
};

/** The folder with `kube-apiserver` and `etcd`. */
const controlPlane = (): Promise<string> =>
  provision(
    { cache: cacheFolder(process.env), name: `kube-apiserver-${kubernetes.version}-etcd-${etcd.version}`, progress },
    async (folder) => {
      progress(`Kubernetes ${kubernetes.version}: compiling its API server and etcd, a quarter of an hour, this once`);
      await writeFile(join(folder, "go.mod"), await mainModule());
      await go(["build", "-o", "etcd", etcd.module], folder, "-mod=mod");
      // Without a version `kubeVersion` of a chart refuses the server.
      const version = `-s -w -X k8s.io/component-base/version.gitVersion=${kubernetes.version}`;
      const command = `${kubernetes.module}/cmd/kube-apiserver`;
      await go(["build", "-ldflags", version, "-o", "kube-apiserver", command], folder, "-mod=mod");
    },
  );

export type ClusterPrograms = {
  readonly apiServer: string;
  readonly etcd: string;
  readonly registry: string;
  /** CustomResourceDefinitions, as YAML. */
  readonly foreignKinds: readonly string[];
};

/** Throws with the reason if Go is missing or a module cannot be had. */
export const clusterPrograms = async (): Promise<ClusterPrograms> => {
  const folder = await controlPlane();
  const kinds: string[] = [];
  for (const [module, path, names] of foreignKinds) {
    const source = await moduleFolder(module);
    for (const name of names) kinds.push(await readFile(join(source, path, `${name}.yaml`), "utf8"));
  }
  const [, version] = registry.split("@");
  const registryFolder = await goProgram(`distribution-${version}`, registry, { env: process.env, progress });
  return {
    apiServer: join(folder, "kube-apiserver"),
    etcd: join(folder, "etcd"),
    registry: join(registryFolder, "registry"),
    foreignKinds: kinds,
  };
};
