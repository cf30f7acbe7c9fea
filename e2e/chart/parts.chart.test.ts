import { readFileSync } from "node:fs";
import { cp, mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { busUsers } from "@herald/bus/permissions";
import {
  compose,
  type DeployedPart,
  type PartEnvironment,
  parts,
  read,
  root,
  schemas,
  services,
} from "@herald/docs/deployed-parts";
import { readConfig, variableInfo } from "@herald/kit";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { z } from "zod";
import { chart, type Helm, type Manifest, manifestsIn, run, startHelm, template, whySkipped } from "./helm.ts";
import { from, valueSets } from "./value-sets.ts";

type Variable = { name: string; value?: string; valueFrom?: { secretKeyRef: { name: string; key: string } } };

/** Its Secrets and files are not those that `infra/init` makes. */
const fromElsewhere = "sign-in by variables of Secrets";

const skipped = await whySkipped("no part was read from the chart");
let helm: Helm;
const rendered: Record<string, Manifest[]> = {};
let secrets: Manifest[] = [];
beforeAll(async () => {
  if (skipped !== undefined) return;
  helm = await startHelm();
  for (const [name, values] of Object.entries(valueSets)) rendered[name] = await template(helm, values);
  secrets = manifestsIn((await initialise()).first);
});
afterAll(() => helm?.remove());

/** The output of `infra/init --kubernetes`, twice. */
const initialise = async () => {
  const folder = await mkdtemp(join(tmpdir(), "herald-init-"));
  try {
    await mkdir(join(folder, "infra"));
    await cp(join(root, "infra/init"), join(folder, "infra/init"));
    const init = async (...args: string[]) => {
      const { ok, stdout, stderr } = await run(join(folder, "infra/init"), ["--kubernetes", ...args], process.env);
      expect(ok, stderr).toBe(true);
      return stdout;
    };
    return { first: await init(), again: await init(), elsewhere: await init("db.example.com:27018") };
  } finally {
    await rm(folder, { recursive: true });
  }
};

const find = (set: string, kind: RegExp, component: string) => {
  const found = (rendered[set] ?? []).find(
    (manifest) => kind.test(manifest.kind) && manifest.metadata.labels["app.kubernetes.io/component"] === component,
  );
  if (found === undefined) throw new Error(`${set} has no ${kind} of ${component}`);
  return found;
};
const podOf = (part: string, set = "defaults") => find(set, /^(Deployment|Job)$/, part).spec.template.spec;
const variablesOf = (part: DeployedPart, set?: string): Variable[] => podOf(part, set).containers[0].env;
const secretsOf = (part: DeployedPart) =>
  variablesOf(part).flatMap(({ name, valueFrom }) =>
    valueFrom ? [{ variable: name, ...valueFrom.secretKeyRef }] : [],
  );
const plainOf = (part: DeployedPart, set?: string): PartEnvironment =>
  Object.fromEntries(variablesOf(part, set).flatMap(({ name, value }) => (value === undefined ? [] : [[name, value]])));
const inSecret = (name: string, key: string): string =>
  (secrets.find(({ metadata }) => metadata.name === name) as { stringData?: PartEnvironment } | undefined)
    ?.stringData?.[key] ?? `init makes no ${key} in ${name}`;
const environmentOf = (part: DeployedPart, set?: string): PartEnvironment => ({
  ...plainOf(part, set),
  ...Object.fromEntries(secretsOf(part).map(({ variable, name, key }) => [variable, inSecret(name, key)])),
});
const infoOf = (part: DeployedPart, name: string) => {
  const schema = Object.entries(schemas[part].shape).find(([key]) => key === name)?.[1];
  return schema && variableInfo(schema);
};

describe.runIf(skipped === undefined)("the parts", () => {
  test.each(parts.flatMap((part) => Object.keys(valueSets).map((set) => [part, set] as const)))(
    "%s gets all that it needs and nothing that it does not know, with %s",
    (part, set) => {
      const env = environmentOf(part, set);
      const names = variablesOf(part, set).map(({ name }) => name);
      expect(new Set(names).size).toBe(names.length);
      if (set === fromElsewhere) return;
      const foreign = Object.keys(env).filter((name) => infoOf(part, name) === undefined);
      expect(foreign.filter((name) => !/^(OTEL|NODE)_/.test(name))).toEqual([]);
      expect(readConfig(schemas[part], env)).toMatchObject({ HERALD_NATS_USER: busUsers[part].user });
      expect(env).toHaveProperty("HERALD_NATS_PASSWORD");
      expect(podOf(part, set).containers[0].image).toContain(`/herald/${part === "bootstrap" ? "bus" : part}`);
    },
  );

  test.each(parts)("%s has every secret by reference, and no secret of another", (part) => {
    // The broker's URL contains no password: that is a separate variable.
    const plain = Object.keys(plainOf(part)).filter((name) => name !== "HERALD_NATS_URL");
    expect(plain.filter((name) => infoOf(part, name)?.secret)).toEqual([]);
    // One service signs open tokens and another verifies them, so both share this secret.
    const foreign = secretsOf(part).filter(({ name }) => name !== `herald-${part}` && name !== "herald-open-keys");
    expect(foreign).toEqual([]);
  });

  test("large numbers, sizes and digests arrive as they were written", () => {
    expect(plainOf("gateway", "production")).toMatchObject({
      HERALD_GATEWAY_QUOTA_SENDS: "20000000",
      OTEL_BSP_MAX_QUEUE_SIZE: "4000000",
    });
    expect(podOf("gateway", "production").containers[0].image).toMatch(
      /^registry\.example\.com\/herald\/gateway@sha256:/,
    );
    expect(podOf("gateway", "own pods").containers[0].image).toBe("your-registry.invalid/herald/gateway:0.1.0-rc.1");
    expect(podOf("gateway").containers[0].image).toBe("your-registry.invalid/herald/gateway:0.1.0");
  });

  test.each(services)("%s is asked where it listens, and gets time to stop", (part) => {
    const config = readConfig(schemas[part], environmentOf(part));
    const own = (field: string) => Reflect.get(config, `HERALD_${field}`);
    const port = own("PORT");
    const [container] = podOf(part).containers;
    expect(container.livenessProbe.httpGet).toEqual({ path: "/livez", port });
    // The gateway depends on the broker until it has been ready once.
    expect(container.startupProbe?.httpGet.path).toBe(part === "gateway" ? "/readyz" : undefined);
    expect(container.readinessProbe.httpGet).toEqual({ path: part === "gateway" ? "/livez" : "/readyz", port });
    expect(own("HOST")).toBe("0.0.0.0");
    expect(container.ports.map(({ containerPort }: { containerPort: number }) => containerPort)).toEqual(
      [port, own("GATEWAY_ADMIN_PORT"), own("METRICS_PORT")].filter((known) => known !== undefined),
    );
    expect(`${podOf(part).terminationGracePeriodSeconds}s`).toBe(compose.services[part]?.stop_grace_period);
    expect(
      podOf(part).topologySpreadConstraints.map(({ topologyKey }: { topologyKey: string }) => topologyKey),
    ).toEqual(["topology.kubernetes.io/zone", "kubernetes.io/hostname"]);
  });

  test.each([...parts, "ferretdb"])("%s runs with as few rights as it can have", (part) => {
    expect(podOf(part, "PostgreSQL")).toMatchObject({
      automountServiceAccountToken: false,
      enableServiceLinks: false,
      securityContext: { runAsNonRoot: true, runAsUser: 1000, seccompProfile: { type: "RuntimeDefault" } },
      containers: [
        {
          securityContext: {
            allowPrivilegeEscalation: false,
            readOnlyRootFilesystem: true,
            capabilities: { drop: ["ALL"] },
          },
          resources: { requests: { memory: expect.any(String) }, limits: { memory: expect.any(String) } },
        },
      ],
    });
  });

  test("what operators set for pods reaches every pod", () => {
    for (const part of parts) {
      expect(find("own pods", /^(Deployment|Job)$/, part).spec.template).toMatchObject({
        metadata: { labels: { "example.com/cost-center": "42" }, annotations: { "example.com/team": "push" } },
        spec: {
          nodeSelector: { "kubernetes.io/arch": "arm64" },
          priorityClassName: "system-cluster-critical",
          volumes: [{ name: "ca" }],
          containers: [{ imagePullPolicy: "Always", volumeMounts: [{ name: "ca", mountPath: "/etc/ca" }] }],
        },
      });
      expect(podOf(part, "production").imagePullSecrets).toEqual([{ name: "registry-login" }]);
    }
  });

  type Rule = { ports: { port: number | string }[]; to?: unknown; from?: unknown };
  const portsOf = (rules: Rule[]) => rules.flatMap(({ ports }) => ports.map(({ port }) => port));
  test.each([
    ["bootstrap", [], [53, 53, 4222]],
    ["gateway", ["metrics", "http"], [53, 53, 4222]],
    ["registry", ["metrics"], [53, 53, 4222, 27017]],
    ["dispatch", ["metrics"], [53, 53, 4222, 27017, 443]],
    ["analytics", ["metrics"], [53, 53, 4222, 27017, 443]],
  ] as const)("the network lets %s in by %j and out by %j", (part, into, out) => {
    const { spec } = find("defaults", /^NetworkPolicy$/, part);
    expect(spec.policyTypes).toEqual(["Ingress", "Egress"]);
    expect(portsOf(spec.ingress)).toEqual(into);
    expect(portsOf(spec.egress)).toEqual(out);
    expect(spec.podSelector.matchLabels["app.kubernetes.io/component"]).toBe(part);
  });

  test("peers narrow the network, and FerretDB is the database if it is enabled", () => {
    const { ingress, egress } = find("production", /^NetworkPolicy$/, "gateway").spec;
    expect(portsOf(ingress)).toEqual(["metrics", "http", "admin"]);
    expect(ingress.every(({ from }: Rule) => from !== undefined)).toBe(true);
    expect(portsOf(egress)).toEqual([53, 53, 4223, 4318]);
    const [, nats, database, internet] = find("production", /^NetworkPolicy$/, "dispatch").spec.egress as Rule[];
    expect([nats, database, internet].every((rule) => rule?.to !== undefined)).toBe(true);

    const [, , toFerretdb] = find("PostgreSQL", /^NetworkPolicy$/, "registry").spec.egress as Rule[];
    const ferretdb = find("PostgreSQL", /^Deployment$/, "ferretdb");
    expect(toFerretdb).toEqual({
      ports: [{ port: 27017 }],
      to: [{ podSelector: { matchLabels: ferretdb.spec.selector.matchLabels } }],
    });
    expect(portsOf(find("PostgreSQL", /^NetworkPolicy$/, "ferretdb").spec.egress)).toEqual([53, 53, 5432]);
    expect(rendered["own pods"]?.filter(({ kind }) => kind === "NetworkPolicy")).toEqual([]);
  });

  test("with sign-in the gateway reaches the provider, knows the client's secret, and no other part changes", () => {
    const { egress } = find("sign-in", /^NetworkPolicy$/, "gateway").spec;
    expect(portsOf(egress)).toEqual([53, 53, 4222, 8443]);
    expect(egress.at(-1).to).toBeUndefined();
    const secret = variablesOf("gateway", "sign-in").find(({ name }) => name === "HERALD_GATEWAY_OIDC_CLIENT_SECRET");
    // Optional, because a provider may give none.
    expect(secret?.valueFrom).toEqual({
      secretKeyRef: { name: "herald-gateway", key: "oidc-client-secret", optional: true },
    });
    expect(readConfig(schemas.gateway, environmentOf("gateway", "sign-in"))).toMatchObject({
      HERALD_GATEWAY_OIDC_ISSUER: "https://id.example.com:8443/realms/company",
      HERALD_GATEWAY_OIDC_URL: "https://herald.example.com",
    });
    for (const part of parts.filter((name) => name !== "gateway"))
      expect(find("sign-in", /^NetworkPolicy$/, part).spec).toEqual(find("defaults", /^NetworkPolicy$/, part).spec);
    const narrowed = find("sign-in at Google", /^NetworkPolicy$/, "gateway").spec.egress.at(-1);
    expect(narrowed).toEqual({ ports: [{ port: 443 }], to: [{ ipBlock: { cidr: "10.3.0.0/16" } }] });
  });

  test("variables from Secrets and files replace what the chart sets, and the network follows", () => {
    const set = fromElsewhere;
    const byName = new Map(variablesOf("gateway", set).map((one) => [one.name, one]));
    expect(byName.get("HERALD_ADMIN_TOKEN")).toEqual(from("HERALD_ADMIN_TOKEN", "from-a-vault", "token"));
    expect(byName.get("HERALD_GATEWAY_OIDC_CLIENT_SECRET_FILE")?.value).toBe("/etc/herald/secret");
    expect(byName.has("HERALD_GATEWAY_OIDC_CLIENT_SECRET")).toBe(false);
    expect(portsOf(find(set, /^NetworkPolicy$/, "gateway").spec.egress)).toEqual([53, 53, 4222, 9443]);
    expect(podOf("gateway", set).containers[0].volumeMounts).toEqual([
      { name: "company", mountPath: "/etc/herald", readOnly: true },
    ]);
    expect(podOf("registry", set).volumes).toBeUndefined();
    const login = variablesOf("dispatch", set).filter(({ name }) => name.startsWith("HERALD_NATS_"));
    expect(login.map(({ name }) => name)).toEqual(["HERALD_NATS_URL", "HERALD_NATS_CREDS_FILE"]);
    for (const part of services)
      expect(variablesOf(part, set)).toContainEqual(from("OTEL_EXPORTER_OTLP_HEADERS", "collector", "headers"));
  });

  test("every variable of the reference can be given: by a value of the chart, by config, by extraEnv", async () => {
    const page = read("docs/reference/configuration.md");
    // Under the heading of a part stands what it alone reads.
    const entries = page.split(/^## /m).flatMap((section) => {
      const reader = section.split("\n", 1)[0]?.toLowerCase() ?? "";
      return [
        ...section.matchAll(/^### (\w+)\n(?:(?!#).*\n)*?Default: .*?\.(?: Read by ([\w, ]+)\.)?(?: Or `(\w+)`\.)?$/gm),
      ].map(([, name = "", readers = reader, file]) => ({ name, readers, file }));
    });
    expect(entries.map(({ name }) => name)).toEqual([...page.matchAll(/^### (\w+)$/gm)].map(([, name]) => name));
    expect(entries.length).toBeGreaterThan(40);
    /** Ports and addresses are the pods' own, and the proxy has values of its own. */
    const byChart =
      /^HERALD_(HOST|PORT|METRICS_PORT|GATEWAY_ADMIN_HOST|GATEWAY_ADMIN_PORT)$|^(HTTPS_PROXY(_FILE)?|NO_PROXY)$/;
    for (const part of parts) {
      const names = entries
        .filter(({ readers }) => readers === "every part" || readers.split(", ").includes(part))
        .flatMap(({ name, file }) => [name, ...(file === undefined ? [] : [file])])
        .filter((name) => !byChart.test(name));
      // A variable and its file exclude each other.
      const files = names.filter((name) => names.includes(name.replace(/_FILE$/, "")) && name.endsWith("_FILE"));
      for (const given of [
        names.filter((name) => !files.includes(name)),
        names.filter((name) => !names.includes(`${name}_FILE`)),
      ]) {
        const values = { [part]: { extraEnv: given.map((name) => from(name, "elsewhere", name.toLowerCase())) } };
        const pods = await template(helm, values);
        const pod = pods.find(
          ({ kind, metadata }) => /^(Deployment|Job)$/.test(kind) && metadata.name === `herald-${part}`,
        );
        const env: Variable[] = pod?.spec.template.spec.containers[0].env;
        expect(env.map(({ name }) => name)).toEqual(expect.arrayContaining(given));
        expect(new Set(env.map(({ name }) => name)).size).toBe(env.length);
      }
    }
  });

  test("Helm accepts the durations and sizes that the service itself accepts, and no other", async () => {
    const texts = [
      ...["62d", "61.999d", "1488h", "1487.999h", "30d", "29.999D", "24h", "24.001h", "25s", "25.001s", "1s"],
      ...["999ms", "999.5ms", "999.4ms", "15m", "14.999m", "0.25h", "0.249h", "25000", "900000", "007.50d", "100000d"],
      ...["", " 90 d ", "5w", "forever", "1.2345d", "-1d", "1e3d"],
    ];
    const withRange = services.flatMap((part) =>
      Object.entries(schemas[part].shape).flatMap(([name, type]) =>
        variableInfo(type)?.accepts.startsWith("a duration") ? [{ part, name, type }] : [],
      ),
    );
    expect(withRange.length).toBeGreaterThan(4);
    for (const text of texts) {
      const config = (part: DeployedPart) =>
        Object.fromEntries(withRange.filter((one) => one.part === part).map(({ name }) => [name, text]));
      const values = Object.fromEntries(services.map((part) => [part, { config: config(part) }]));
      const { stderr } = await helm.try("template", "herald", chart, ...(await helm.values(values)));
      const refused = [...stderr.matchAll(/config\.(\w+) is ".*"; accepted: a duration/g)].map(([, name]) => name);
      const expected = withRange.filter(({ type }) => text !== "" && !z.safeParse(type as z.ZodType, text).success);
      expect([text, refused.toSorted()]).toEqual([text, expected.map(({ name }) => name).toSorted()]);
    }
    for (const [storage, ok] of [
      ["64MiB", true],
      ["63MiB", false],
      ["67.2MB", true],
      ["65000KiB", false],
    ] as const)
      expect([
        storage,
        (await helm.try("template", "herald", chart, ...(await helm.values({ nats: { storage } })))).ok,
      ]).toEqual([storage, ok]);
  });

  test("with a proxy what calls servers elsewhere knows it, and reaches it in their place", () => {
    const set = "through a proxy";
    const secret = { secretKeyRef: { name: "herald-proxy", key: "https-proxy" } };
    const proxyOf = (part: (typeof parts)[number], of: string) =>
      variablesOf(part, of).filter(({ name }) => /^(HTTPS|NO)_PROXY$/.test(name));
    for (const part of ["gateway", "dispatch", "analytics"] as const) {
      expect(proxyOf(part, set)).toEqual([{ name: "HTTPS_PROXY", valueFrom: secret }]);
      const { egress } = find(set, /^NetworkPolicy$/, part).spec;
      expect(portsOf(egress)).toEqual([53, 53, 4222, ...(part === "gateway" ? [] : [27017]), 8080]);
      expect(egress.at(-1).to).toEqual([{ ipBlock: { cidr: "10.4.0.0/16" } }]);
    }
    for (const part of ["bootstrap", "registry"] as const) {
      expect(proxyOf(part, set)).toEqual([]);
      expect(find(set, /^NetworkPolicy$/, part).spec).toEqual(find("defaults", /^NetworkPolicy$/, part).spec);
    }
    const inPart = "through a proxy in part";
    expect(portsOf(find(inPart, /^NetworkPolicy$/, "dispatch").spec.egress)).toEqual([53, 53, 4222, 27017, 8888, 443]);
    expect(portsOf(find(inPart, /^NetworkPolicy$/, "gateway").spec.egress)).toEqual([53, 53, 4222]);
    expect(readConfig(schemas.dispatch, environmentOf("dispatch", inPart))).toMatchObject({
      HTTPS_PROXY: "http://proxy.example.com:8888/",
      NO_PROXY: "push.example.com,10.0.0.0/8",
    });
  });

  test("infra/init makes every Secret of the chart and of the brokers, and keeps its values", async () => {
    const { first, again, elsewhere } = await initialise();
    expect(again).toBe(first);
    expect(elsewhere).toContain("@db.example.com:27018");
    const made = manifestsIn(first).flatMap((secret) =>
      Object.keys((secret as unknown as { stringData: PartEnvironment }).stringData).map(
        (key) => `${secret.metadata.name} ${key}`,
      ),
    );
    const referred = parts.flatMap((part) => secretsOf(part).map(({ name, key }) => `${name} ${key}`));
    const brokers = [...read("infra/helm/evaluation.yaml").matchAll(/\$?(HERALD_(NATS|MONGO)_PASSWORD_[A-Z]+)/g)].map(
      ([, variable = "", of = ""]) => `herald-${of.toLowerCase()} ${variable}`,
    );
    const users = ["REGISTRY", "DISPATCH", "ANALYTICS"].map((name) => `herald-mongo HERALD_MONGO_PASSWORD_${name}`);
    expect(made.toSorted()).toEqual([...new Set([...referred, ...brokers, ...users])].toSorted());
    expect(readFileSync(join(root, "infra/helm/nats-values.yaml"), "utf8")).toContain(
      "secretRef: { name: herald-nats }",
    );
  });
});
