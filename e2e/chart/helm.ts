import { execFile } from "node:child_process";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { findGo } from "@herald/provision";
import { parseAllDocuments } from "yaml";
import { goProgram } from "../test-tools.ts";

/** Helm as the tests use it: the pinned version, with folders of its own. */

/** By HERALD_CHART_HELM, which CI sets to 3 too. */
const helmVersions: Readonly<Record<string, string>> = { "3": "3.22.0", "4": "4.3.1" };
export const helmMajor = process.env.HERALD_CHART_HELM ?? "4";
const helmVersion = helmVersions[helmMajor];
const helmModule = `helm.sh/helm/v${helmMajor}/cmd/helm@v${helmVersion}`;
const timeoutMs = 900_000;
/** Helm 3 takes Kubernetes 1.20 as the cluster's version if its makers name none, and then refuses the chart. */
const linked = { "helm.sh/helm/v3/pkg/chartutil.k8sVersionMinor": "34" };

export const root = join(import.meta.dirname, "../..");
export const chart = join(root, "infra/helm/herald");

export const progress = (line: string): void => void process.stderr.write(`${line}\n`);

/** Why the tests cannot run here, or undefined. Says so once. */
export const whySkipped = async (what: string): Promise<string | undefined> => {
  const why = await findGo(process.env).then(
    () => undefined,
    (error: Error) => error.message,
  );
  if (why !== undefined) progress(`SKIPPED: ${what}, because ${why}`);
  return why;
};

export type Result = { readonly ok: boolean; readonly stdout: string; readonly stderr: string };

/** Runs a program to its end. Never throws. */
export const run = (command: string, args: readonly string[], env: NodeJS.ProcessEnv, cwd = root): Promise<Result> =>
  new Promise((resolve) => {
    execFile(command, args, { env, cwd, timeout: timeoutMs, maxBuffer: 64_000_000 }, (error, stdout, stderr) =>
      resolve({ ok: error === null, stdout, stderr }),
    );
  });

export type Values = Readonly<Record<string, unknown>>;
export type Helm = {
  readonly folder: string;
  /** Never throws. */
  try(...args: string[]): Promise<Result>;
  /** The standard output. Throws with the errors. */
  (...args: string[]): Promise<string>;
  /** The arguments that pass values. */
  values(values: Values): Promise<string[]>;
  /** Removes its folders. */
  remove(): Promise<void>;
};

/** Compiles Helm, once for this user. */
export const startHelm = async (env: NodeJS.ProcessEnv = {}): Promise<Helm> => {
  if (helmVersion === undefined) throw new Error(`HERALD_CHART_HELM is ${helmMajor}; accepted: 3 and 4`);
  const folderOfHelm = await goProgram(`helm-${helmVersion}`, helmModule, { env: process.env, progress, linked });
  const program = join(folderOfHelm, "helm");
  const folder = await mkdtemp(join(tmpdir(), "herald-chart-"));
  const own = Object.fromEntries(["CACHE", "CONFIG", "DATA"].map((name) => [`HELM_${name}_HOME`, join(folder, name)]));
  const tryHelm = (...args: string[]) => run(program, args, { ...process.env, ...own, ...env });
  const helm = async (...args: string[]) => {
    const { ok, stdout, stderr } = await tryHelm(...args);
    if (!ok) throw new Error(`helm ${args.join(" ")}: ${stderr}${stdout}`);
    return stdout;
  };
  let files = 0;
  const values = async (given: Values) => {
    const file = join(folder, `values-${++files}.json`);
    await mkdir(folder, { recursive: true });
    await writeFile(file, JSON.stringify(given));
    return ["--values", file];
  };
  return Object.assign(helm, { folder, try: tryHelm, values, remove: () => rm(folder, { recursive: true }) });
};

/** An object of Kubernetes, as far as all kinds are the same. */
export type Manifest = {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: {
    readonly name: string;
    readonly labels: Readonly<Record<string, string>>;
    readonly annotations?: Readonly<Record<string, string>>;
  };
  // biome-ignore lint/suspicious/noExplicitAny: each kind has another one, which kubernetes-validate and the API server check
  readonly spec: any;
  readonly data?: Readonly<Record<string, string>>;
};

export const manifestsIn = (text: string): Manifest[] =>
  parseAllDocuments(text).flatMap((document) => document.toJS() ?? []);

/** The chart with the values, as a release of this name. */
export const template = async (helm: Helm, values: Values, release = "herald", from = chart): Promise<Manifest[]> =>
  manifestsIn(await helm("template", release, from, "--namespace", "herald", ...(await helm.values(values))));
