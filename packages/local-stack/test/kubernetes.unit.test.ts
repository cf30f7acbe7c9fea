import { readdirSync } from "node:fs";
import { join } from "node:path";
import { busUsers } from "@herald/bus/permissions";
import { readConfig, variableInfo } from "@herald/kit";
import { expect, test } from "vitest";
import { parse, parseAllDocuments } from "yaml";
import { compose, type Environment, type Part, parts, read, root, schemas, services } from "./deployed-parts.ts";

type Reference = { name: string; key: string };
type Container = {
  name: string;
  image: string;
  env: { name: string; value?: string; valueFrom?: { secretKeyRef?: Reference } }[];
  envFrom: { configMapRef: { name: string } }[];
  ports?: { name: string; containerPort: number }[];
};
type Pod = { containers: [Container]; terminationGracePeriodSeconds?: number };
type Manifest = { kind: string; metadata: { name: string }; spec: { template: { spec: Pod } } };
type Kustomization = {
  resources: string[];
  images: { name: string }[];
  configMapGenerator: { name: string; literals: string[] }[];
};
const infoOf = (part: Part, name: string) => {
  const schema = Object.entries(schemas[part].shape).find(([key]) => key === name)?.[1];
  return schema && variableInfo(schema);
};
const unknownTo = (part: Part, env: Environment) => Object.keys(env).filter((name) => infoOf(part, name) === undefined);

/** A value that an operator who follows the page would fill in. */
const filledIn = (name: string): string => {
  if (name.endsWith("_URL")) return "mongodb://user:password@mongo.example";
  return name.endsWith("_KEYS") ? `k1:${Buffer.alloc(32, 7).toString("base64")}` : "0123456789abcdef".repeat(2);
};

const folder = "infra/k8s";
const base: Kustomization = parse(read(`${folder}/kustomization.yaml`));
const manifests = base.resources.flatMap((file) =>
  parseAllDocuments(read(`${folder}/${file}`)).map((document): Manifest => document.toJS()),
);
const configMaps = new Map(
  base.configMapGenerator.map(({ name, literals }) => [
    name,
    Object.fromEntries(literals.map((literal) => [literal.split("=", 1)[0], literal.replace(/^[^=]+=/, "")])),
  ]),
);
const podOf = (part: Part): Pod => {
  const found = manifests.find(({ kind, metadata }) => /^(Deployment|Job)$/.test(kind) && metadata.name === part);
  if (found === undefined) throw new Error(`no manifest runs ${part}`);
  return found.spec.template.spec;
};
const containerOf = (part: Part) => podOf(part).containers[0];
const secretsOf = (part: Part) =>
  containerOf(part).env.flatMap(({ name, valueFrom }) =>
    valueFrom?.secretKeyRef ? [{ name, secret: valueFrom.secretKeyRef.name, key: valueFrom.secretKeyRef.key }] : [],
  );
const filledSecretsOf = (part: Part): Environment =>
  Object.fromEntries(secretsOf(part).map(({ name }) => [name, filledIn(name)]));
const plainOf = (part: Part): Environment =>
  Object.assign(
    {},
    ...containerOf(part).envFrom.map(({ configMapRef }) => {
      const found = configMaps.get(configMapRef.name);
      if (found === undefined) throw new Error(`no ConfigMap ${configMapRef.name}`);
      return found;
    }),
    Object.fromEntries(containerOf(part).env.flatMap(({ name, value }) => (value ? [[name, value]] : []))),
  );

test("every file is part of the base", () => {
  expect(readdirSync(join(root, folder)).toSorted()).toEqual([...base.resources, "kustomization.yaml"].toSorted());
});

test.each(parts)("gives %s all that it needs and nothing that it does not know", (part) => {
  const env = { ...plainOf(part), ...filledSecretsOf(part) };
  expect(unknownTo(part, env)).toEqual([]);
  expect(readConfig(schemas[part], env)).toMatchObject({ HERALD_NATS_USER: busUsers[part].user });
  expect(env).toHaveProperty("HERALD_NATS_PASSWORD");
  expect(base.images).toContainEqual(expect.objectContaining({ name: containerOf(part).image }));
  expect(containerOf(part).image).toBe(`your-registry.invalid/herald/${part === "bootstrap" ? "bus" : part}`);
});

test.each(parts)("has every secret of %s by reference, and no secret of another", (part) => {
  // The broker's URL contains no password: that is a separate variable.
  const plain = Object.keys(plainOf(part)).filter((name) => name !== "HERALD_NATS_URL");
  expect(plain.filter((name) => infoOf(part, name)?.secret)).toEqual([]);
  // One service signs open tokens and another verifies them, so both share this secret.
  expect(secretsOf(part).filter(({ secret }) => secret !== part && secret !== "open-keys")).toEqual([]);
});

test.each(services)("asks %s where it listens, and lets it end", (part) => {
  const config = readConfig(schemas[part], { ...plainOf(part), ...filledSecretsOf(part) });
  const own = (field: string) => Reflect.get(config, `HERALD_${field}`);
  const port = own("PORT");
  expect(podOf(part)).toMatchObject({
    enableServiceLinks: false,
    containers: [
      {
        livenessProbe: { httpGet: { path: "/livez", port } },
        readinessProbe: { httpGet: { path: "/readyz", port } },
      },
    ],
  });
  expect(own("HOST")).toBe("0.0.0.0");
  expect(containerOf(part).ports?.map(({ containerPort }) => containerPort)).toEqual(
    [port, own("GATEWAY_ADMIN_PORT"), own("METRICS_PORT")].filter((known) => known !== undefined),
  );
  expect(`${podOf(part).terminationGracePeriodSeconds}s`).toBe(compose.services[part]?.stop_grace_period);
  expect(manifests.map(({ kind, metadata }) => `${kind} ${metadata.name}`)).toContain(`PodDisruptionBudget ${part}`);
});

test.each(parts)("runs %s with as few rights as it can have", (part) => {
  expect(podOf(part)).toMatchObject({
    automountServiceAccountToken: false,
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

test("docs/how-to/deploy.md makes every secret that is referred to, and no other", () => {
  const made = [...read("docs/how-to/deploy.md").matchAll(/^secret ([a-z-]+) (.+)$/gm)].flatMap(([, name, rest = ""]) =>
    [...rest.matchAll(/--from-literal=([a-z-]+)=/g)].map(([, key]) => `${name} ${key}`),
  );
  const referred = parts.flatMap((part) => secretsOf(part).map(({ secret, key }) => `${secret} ${key}`));
  expect(made.toSorted()).toEqual([...new Set(referred)].toSorted());
});
