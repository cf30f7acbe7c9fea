import { readFileSync } from "node:fs";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { durables } from "@herald/contracts";
import { findBinary } from "@herald/provision";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { parse } from "yaml";
import { writeChart } from "../../infra/release/chart.ts";
import type { ImageReferences } from "../../infra/release/images.ts";
import { pipInstall } from "../test-tools.ts";
import {
  chart,
  type Helm,
  helmMajor,
  type Manifest,
  manifestsIn,
  progress,
  root,
  run,
  startHelm,
  template,
  type Values,
  whySkipped,
} from "./helm.ts";
import { digest, refusedValues, parts as releasedParts, valueSets, wrongValues } from "./value-sets.ts";

/** Every page that users read. */
const markdownOf = async (folder: string): Promise<string[]> => {
  const { stdout } = await run("git", ["ls-files", "*.md"], process.env, folder);
  return stdout.trim().split("\n");
};

/** Versions of Kubernetes: the oldest that the chart supports, one that is in use, the newest whose schemas can be had. */
const kubernetesVersions = ["1.30", "1.34", "1.37"];
const validator = "kubernetes-validate==1.37.0";

const skipped = await whySkipped("the chart was not rendered");
let helm: Helm;
const rendered: Record<string, Manifest[]> = {};
beforeAll(async () => {
  if (skipped !== undefined) return;
  helm = await startHelm();
  for (const [name, values] of Object.entries(valueSets)) rendered[name] = await template(helm, values);
});
afterAll(() => helm?.remove());

const of = (set: string): Manifest[] => rendered[set] ?? [];
const ofKind = (set: string, kind: string) => of(set).filter((manifest) => manifest.kind === kind);
const componentOf = ({ metadata }: Manifest) => metadata.labels["app.kubernetes.io/component"];

describe.runIf(skipped === undefined)("rendered", () => {
  test.each(Object.entries(valueSets))("lint finds nothing in %s", async (_name, values) => {
    const { ok, stdout, stderr } = await helm.try("lint", "--strict", chart, ...(await helm.values(values)));
    expect(ok, stdout + stderr).toBe(true);
    expect(stdout).not.toMatch(/\[(WARNING|ERROR)\]/);
  });

  test.each(kubernetesVersions)("every object is one of Kubernetes %s", async (version) => {
    const folder = await pipInstall(validator.replace("==", "-"), [validator], { env: process.env, progress });
    const all = [
      ...Object.values(rendered).flat(),
      ...manifestsIn(readFileSync(join(root, "infra/helm/evaluation.yaml"), "utf8")),
    ];
    // Kinds of others have no schema here; the API server of the other file checks them.
    const own = all.filter(
      ({ apiVersion }) => !/^(keda\.sh|monitoring\.coreos\.com|gateway\.networking\.k8s\.io)\//.test(apiVersion),
    );
    expect(own.length).toBeGreaterThan(100);
    const file = join(helm.folder, "objects.json");
    // Equal ones once: most objects are the same in every set.
    await writeFile(file, [...new Set(own.map((manifest) => JSON.stringify(manifest)))].join("\n---\n"));
    const args = ["-m", "kubernetes_validate", "-k", version, "--strict", "--quiet", file];
    const python = String(await findBinary("python3", process.env.PATH));
    const { ok, stdout, stderr } = await run(python, args, { ...process.env, PYTHONPATH: folder });
    expect(ok, stdout + stderr).toBe(true);
  });

  test.each(wrongValues)("a wrong value is refused with its path %s", async (path, values) => {
    const { ok, stderr } = await helm.try("template", "herald", chart, ...(await helm.values(values)));
    expect(ok).toBe(false);
    expect(stderr).toMatch(path === "/" ? /at '':.*'gatway'/ : `at '${path}'`);
  });

  test.for(refusedValues)(
    "what a cluster or a service would refuse is a sentence: %s",
    async ([sentence, values, release]) => {
      const { ok, stderr } = await helm.try("template", release ?? "herald", chart, ...(await helm.values(values)));
      expect([ok, stderr]).toEqual([false, expect.stringContaining(`\n  ${sentence}`)]);
    },
  );

  test("all problems are named at once", async () => {
    const values = { ingress: { enabled: true }, httpRoute: { enabled: true } };
    const { stderr } = await helm.try("template", "7herald", chart, ...(await helm.values(values)));
    expect(stderr.match(/\n {2}\S/g)).toHaveLength(3);
  });

  test("every object is named by the release and has the usual labels", async () => {
    const all = (await Promise.all(Object.values(valueSets).map((values) => template(helm, values, "push-eu")))).flat();
    for (const { metadata } of all) {
      expect(metadata.name).toMatch(/^push-eu-/);
      expect(metadata.labels).toMatchObject({
        "app.kubernetes.io/name": "herald",
        "app.kubernetes.io/instance": "push-eu",
        "app.kubernetes.io/component": expect.any(String),
        "app.kubernetes.io/part-of": "herald",
        "app.kubernetes.io/version": "0.1.0",
        "app.kubernetes.io/managed-by": "Helm",
        "helm.sh/chart": "herald-0.1.0",
      });
    }
    const kinds = new Set(all.map(({ kind }) => kind));
    expect([...kinds]).not.toEqual(
      expect.arrayContaining([expect.stringMatching(/^(Secret|StatefulSet|PersistentVolumeClaim)$/)]),
    );
  });

  test("a fraction is written as it is", () => {
    expect(JSON.stringify(of("without defaults"))).toContain('{"name":"OTEL_TRACES_SAMPLER_ARG","value":"0.25"}');
  });

  test("an autoscaler owns the number of replicas, or the values do", () => {
    for (const set of Object.keys(valueSets)) {
      const owned = [...ofKind(set, "HorizontalPodAutoscaler"), ...ofKind(set, "ScaledObject")].map(
        ({ spec }) => spec.scaleTargetRef.name,
      );
      const without = ofKind(set, "Deployment").filter(({ spec }) => spec.replicas === undefined);
      expect(without.map(({ metadata }) => metadata.name).toSorted(), set).toEqual(owned.toSorted());
    }
    expect(ofKind("production", "HorizontalPodAutoscaler").map(componentOf)).toEqual(["gateway", "dispatch"]);
    expect(ofKind("KEDA and Gateway API", "ScaledObject").map(componentOf).toSorted()).toEqual([
      "analytics",
      "registry",
    ]);
    for (const { spec } of ofKind("production", "HorizontalPodAutoscaler"))
      expect(spec.metrics).toMatchObject([{ resource: { name: "cpu", target: { averageUtilization: 70 } } }]);
  });

  test("KEDA asks for durables that there are, each in its stream", () => {
    const triggers = ofKind("KEDA and Gateway API", "ScaledObject").flatMap(({ spec, metadata }) => {
      expect(spec.minReplicaCount, metadata.name).toBe(2);
      return spec.triggers.map((trigger: { type: string; metadata: Record<string, string> }) => {
        expect(trigger.type).toBe("nats-jetstream");
        expect(trigger.metadata).toMatchObject({
          account: "HERALD",
          natsServerMonitoringEndpoint: "nats-headless.messaging.svc:8222",
        });
        return [trigger.metadata.consumer, trigger.metadata.stream, componentOf({ metadata } as Manifest)];
      });
    });
    const expected = (["analytics-events", "analytics-open-groups", "registry-expand", "registry-import"] as const).map(
      (name) => [name, durables[name].stream, name.split("-")[0]],
    );
    expect(triggers.toSorted()).toEqual(expected);
  });

  test("routes lead to the public port alone", () => {
    const [ingress] = ofKind("production", "Ingress");
    expect(ingress?.spec.rules).toMatchObject([
      { http: { paths: [{ backend: { service: { name: "herald-gateway", port: { name: "http" } } } }] } },
    ]);
    const [route] = ofKind("KEDA and Gateway API", "HTTPRoute");
    expect(route?.spec.rules).toEqual([{ backendRefs: [{ name: "herald-gateway", port: 80 }] }]);
    const service = ofKind("defaults", "Service").find(({ metadata }) => metadata.name === "herald-gateway");
    expect(service?.spec.ports).toEqual([{ name: "http", port: 80, targetPort: "http" }]);
  });

  test("a disruption budget for each Deployment evicts what is not ready anyway", () => {
    for (const set of ["defaults", "PostgreSQL"]) {
      const budgets = ofKind(set, "PodDisruptionBudget");
      expect(budgets.map(componentOf)).toEqual(ofKind(set, "Deployment").map(componentOf));
      for (const { spec } of budgets)
        expect(spec).toMatchObject({ maxUnavailable: 1, unhealthyPodEvictionPolicy: "AlwaysAllow" });
    }
  });

  test("the bootstrap step is a hook that needs nothing of the release", () => {
    const hooks = of("defaults").filter(({ metadata }) => metadata.annotations?.["helm.sh/hook"] !== undefined);
    expect(hooks).toMatchObject([
      {
        kind: "Job",
        metadata: {
          annotations: {
            "helm.sh/hook": "pre-install,pre-upgrade",
            "helm.sh/hook-delete-policy": "before-hook-creation",
          },
        },
        spec: { activeDeadlineSeconds: 600, ttlSecondsAfterFinished: 86_400 },
      },
    ]);
    expect(JSON.stringify(hooks)).not.toMatch(/configMap/i);
  });

  test("alerts and dashboard are those of infra/observability, in the packed chart too", async () => {
    const alerts = readFileSync(join(root, "infra/observability/alerts.yml"), "utf8");
    const dashboard = readFileSync(join(root, "infra/observability/dashboard.json"), "utf8");
    await helm("package", chart, "--destination", helm.folder);
    const packed = await template(helm, valueSets.production ?? {}, "herald", join(helm.folder, "herald-0.1.0.tgz"));
    expect(packed).toEqual(of("production"));
    expect(ofKind("production", "PrometheusRule")[0]?.spec).toEqual(parse(alerts));
    const [map] = ofKind("production", "ConfigMap");
    expect(JSON.parse(map?.data?.["herald.json"] ?? "")).toEqual(JSON.parse(dashboard));
    expect(map?.metadata.labels.grafana_dashboard).toBe("1");
  });

  test("a release's chart contains its images by digest, and everything else", async () => {
    const images = Object.fromEntries(
      [...releasedParts, "simulators"].map((name) => [name, `registry.example.com/herald/${name}@${digest}`]),
    ) as ImageReferences;
    const archive = await writeChart(root, helm.folder, "0.1.0-release", "registry.example.com/herald", images);
    const { monitoring } = valueSets.production ?? {};
    const released = await template(helm, { monitoring }, "herald", archive);
    const used = released.flatMap(
      ({ spec }) => spec?.template?.spec.containers.map(({ image }: { image: string }) => image) ?? [],
    );
    expect(used.toSorted()).toEqual(releasedParts.map((name) => String(images[name])).toSorted());
    expect(released).toEqual(
      await template(helm, {
        monitoring,
        images: {
          repository: "registry.example.com/herald",
          ...Object.fromEntries(releasedParts.map((name) => [name, { digest }])),
        },
      }),
    );
  });

  const notesWith = async (values: Values) =>
    (await helm("install", "herald", chart, "--dry-run=client", ...(await helm.values(values)))).split("NOTES:")[1];
  const proxies = (count: number) => ({ gateway: { config: { HERALD_GATEWAY_TRUST_PROXY: count } } });
  const clients = [{ namespaceSelector: { matchLabels: { "kubernetes.io/metadata.name": "ingress-nginx" } } }];
  // Helm 3 asks a cluster also for a dry run.
  test.runIf(helmMajor === "4").each([
    ["by default", {}, true],
    ["with two proxies and every client", proxies(2), true],
    ["without policies", { networkPolicies: { enabled: false, clients } }, true],
    [
      "with a proxy of operators and without policies",
      {
        gateway: { config: { HERALD_GATEWAY_TRUST_PROXY: 0, HERALD_GATEWAY_ADMIN_TRUST_PROXY: 1 } },
        networkPolicies: { enabled: false },
      },
      true,
    ],
    ["without any variable", { gateway: { config: null } }, false],
    ["if the clients are the proxies", { networkPolicies: { clients } }, false],
    ["if no proxy is trusted", proxies(0), false],
  ])("the notes warn of pods that can name any address as theirs %s: %o %s", async (_when, values, warned) => {
    const notes = await notesWith(values);
    expect(notes).toContain("See how far it is");
    expect(/WARNING.*X-Forwarded-For/s.test(String(notes))).toBe(warned);
  });

  test("the pages install, upgrade and configure with what the chart knows", async () => {
    const pages = await Promise.all(
      (await markdownOf(root)).map(async (page) => [page, await readFile(join(root, page), "utf8")] as const),
    );
    const blocks = pages.flatMap(([page, text]) =>
      [...text.matchAll(/^```ya?ml\n([\s\S]*?)^```$/gm)].map(([, block = ""]) => [page, block] as const),
    );
    // A block is of values if its first key is one of the chart's.
    const known = Object.keys(parse(readFileSync(join(chart, "values.yaml"), "utf8")));
    const files = blocks.filter(([, text]) => known.includes(/^(?:#.*\n)*(\w+):/.exec(text)?.[1] ?? ""));
    expect(files.map(([page]) => page)).toEqual(
      expect.arrayContaining(["docs/how-to/deploy.md", "docs/how-to/sign-in-with-your-company.md"]),
    );
    for (const [page, values] of files) expect((await template(helm, parse(values))).length, page).toBeGreaterThan(10);

    await writeFile(
      join(helm.folder, "herald.yaml"),
      String(files.find(([, text]) => text.startsWith("# herald.yaml"))?.[1]),
    );
    const commands = pages.flatMap(([page, text]) =>
      [...text.matchAll(/^helm (?:install|upgrade) herald .*$/gm)].map(([command]) => [page, command] as const),
    );
    expect(commands.map(([page]) => page)).toEqual(
      expect.arrayContaining(["docs/how-to/deploy.md", "docs/how-to/upgrade.md"]),
    );
    for (const [, command] of commands) {
      const [, , name = "", path = "", ...options] = command.split(" ");
      const args = options
        .filter((option) => option !== "--wait")
        .map((option) => option.replace(/^herald\.yaml$/, join(helm.folder, option)));
      expect(manifestsIn(await helm("template", name, join(root, path), ...args)).length, command).toBeGreaterThan(10);
    }
  });
});
