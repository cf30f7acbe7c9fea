import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Cluster, startCluster } from "./cluster.ts";
import { chart, type Helm, manifestsIn, progress, root, run, startHelm, template, whySkipped } from "./helm.ts";
import { simulatorObjects } from "./simulators.ts";
import { valueSets } from "./value-sets.ts";

/**
 * The chart on a real API server, with HERALD_CHART_CLUSTER=local: packed, pushed, pulled, installed, upgraded, rolled back, uninstalled.
 * No pod runs, so hooks are not waited for; their objects are posted as dry runs.
 */

const asked = process.env.HERALD_CHART_CLUSTER === "local";
const skipped = asked
  ? await whySkipped("the chart was not installed")
  : "HERALD_CHART_CLUSTER=local is not set; with it an API server is compiled once, in a quarter of an hour";
if (!asked) progress(`SKIPPED: the chart was not installed on an API server, because ${skipped}`);

const namespace = "herald";
let folder: string;
let cluster: Cluster;
let helm: Helm;
const inNamespace = ["--namespace", namespace, "--no-hooks"];
const released = async () => (await cluster.objectsIn(namespace)).filter((object) => !object.startsWith("Secret "));

beforeAll(async () => {
  if (skipped !== undefined) return;
  folder = await mkdtemp(join(tmpdir(), "herald-cluster-"));
  cluster = await startCluster(folder);
  helm = await startHelm({ KUBECONFIG: cluster.kubeconfig });
  // Warnings name every pod template that this level would refuse.
  const labels = {
    "pod-security.kubernetes.io/warn": "restricted",
    "pod-security.kubernetes.io/enforce": "restricted",
  };
  const made = await cluster.call("POST", "/api/v1/namespaces", { metadata: { name: namespace, labels } });
  expect(made.status, made.body).toBe(201);
  for (const version of ["0.1.0", "0.1.1"])
    await helm("package", chart, "--version", version, "--app-version", version, "--destination", helm.folder);
  for (const version of ["0.1.0", "0.1.1"])
    await helm("push", join(helm.folder, `herald-${version}.tgz`), `oci://${cluster.registry}/charts`, "--plain-http");
});
afterAll(async () => {
  await cluster?.stop();
  await helm?.remove();
  if (folder !== undefined) await rm(folder, { recursive: true, force: true });
});

/** Installs or upgrades from the registry. */
const release = async (command: "install" | "upgrade", name: string, version: string, set: string) => {
  const source = `oci://${cluster.registry}/charts/herald`;
  const values = await helm.values(valueSets[set] ?? {});
  return helm.try(command, name, source, "--plain-http", "--version", version, ...inNamespace, ...values);
};

describe.runIf(skipped === undefined)("on an API server", () => {
  test.each(Object.keys(valueSets))(
    "every object of %s is admitted, and uninstalling leaves only Secrets",
    async (set) => {
      const before = await cluster.objectsIn(namespace);
      const { ok, stdout, stderr } = await release("install", "herald", "0.1.0", set);
      expect(ok, stdout + stderr).toBe(true);
      expect(stderr).not.toMatch(/warning/i);
      const all = await template(helm, valueSets[set] ?? {});
      const expected = all.filter(({ metadata }) => metadata.annotations?.["helm.sh/hook"] === undefined);
      expect(await released()).toEqual(expected.map(({ kind, metadata }) => `${kind} ${metadata.name}`).toSorted());

      await helm("uninstall", "herald", ...inNamespace);
      expect(await cluster.objectsIn(namespace)).toEqual(before);
      expect(before.filter((object) => !object.startsWith("Secret "))).toEqual([]);
    },
  );

  test.each(Object.keys(valueSets))("the hook's objects of %s are admitted", async (set) => {
    const hooks = (await template(helm, valueSets[set] ?? {})).filter(
      ({ metadata }) => metadata.annotations?.["helm.sh/hook"] !== undefined,
    );
    expect(hooks.map(({ kind }) => kind)).toEqual(["Job"]);
    for (const hook of hooks) {
      const path = `/apis/batch/v1/namespaces/${namespace}/jobs?dryRun=All&fieldValidation=Strict`;
      const { status, body, warning } = await cluster.call("POST", path, hook);
      expect(status, body).toBe(201);
      expect(warning).toBe("");
    }
  });

  test("the notes name missing Secrets, until infra/init --kubernetes made them", async () => {
    const first = await release("install", "herald", "0.1.0", "defaults");
    expect(first.stdout).toContain("  herald-gateway, key admin-token\n  herald-gateway, key nats-password\n");
    const init = await mkdtemp(join(folder, "init-"));
    await run("mkdir", ["infra"], process.env, init);
    await run("cp", [join(root, "infra/init"), "infra/init"], process.env, init);
    const { stdout } = await run(join(init, "infra/init"), ["--kubernetes"], process.env);
    for (const secret of manifestsIn(stdout)) {
      const { status, body } = await cluster.call("POST", `/api/v1/namespaces/${namespace}/secrets`, secret);
      expect(status, body).toBe(201);
    }
    const second = await release("upgrade", "herald", "0.1.0", "defaults");
    expect(second.stdout).toContain("Herald 0.1.0 is release herald in namespace herald.");
    expect(second.stdout).not.toContain("key ");
    await helm("uninstall", "herald", ...inNamespace);
    // What the next installation needs is still there.
    expect(await cluster.objectsIn(namespace)).toEqual(
      manifestsIn(stdout)
        .map(({ metadata }) => `Secret ${metadata.name}`)
        .toSorted(),
    );
  });

  test("an upgrade changes what it must, and a rollback brings it back", async () => {
    const image = async () => {
      const { body } = await cluster.call("GET", `/apis/apps/v1/namespaces/${namespace}/deployments/herald-gateway`);
      const { spec } = JSON.parse(body);
      return { image: spec.template.spec.containers[0].image, replicas: spec.replicas };
    };
    await release("install", "herald", "0.1.0", "defaults");
    const before = await released();
    expect(await image()).toEqual({ image: "your-registry.invalid/herald/gateway:0.1.0", replicas: 2 });

    const { ok, stderr } = await release("upgrade", "herald", "0.1.1", "KEDA and Gateway API");
    expect(ok, stderr).toBe(true);
    expect((await image()).image).toBe("your-registry.invalid/herald/gateway:0.1.1");
    expect(await released()).toEqual(
      [
        ...before,
        "HTTPRoute herald-gateway",
        "ScaledObject herald-analytics",
        "ScaledObject herald-registry",
      ].toSorted(),
    );

    await helm("rollback", "herald", "1", ...inNamespace);
    expect(await image()).toEqual({ image: "your-registry.invalid/herald/gateway:0.1.0", replicas: 2 });
    expect(await released()).toEqual(before);
    await helm("uninstall", "herald", ...inNamespace);
  });

  test("two releases live in one namespace", async () => {
    await release("install", "herald", "0.1.0", "PostgreSQL");
    const { ok, stderr } = await release("install", "push-eu", "0.1.0", "PostgreSQL");
    expect(ok, stderr).toBe(true);
    await helm("uninstall", "push-eu", ...inNamespace);
    await helm("uninstall", "herald", ...inNamespace);
    expect(await released()).toEqual([]);
  });

  test("the objects of evaluation.yaml and the simulators of kind.ts are admitted", async () => {
    const evaluation = manifestsIn(await readFile(join(root, "infra/helm/evaluation.yaml"), "utf8"));
    for (const object of [...evaluation, ...simulatorObjects("simulators:test", "http://herald-gateway")]) {
      const group = object.apiVersion === "v1" ? "/api/v1" : `/apis/${object.apiVersion}`;
      const path = `${group}/namespaces/${namespace}/${object.kind.toLowerCase()}s?dryRun=All&fieldValidation=Strict`;
      const { status, body, warning } = await cluster.call("POST", path, object);
      expect(status, body).toBe(201);
      expect(warning).toBe("");
    }
  });
});
