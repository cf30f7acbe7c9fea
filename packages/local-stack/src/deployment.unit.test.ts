import { execFile } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { copyFile, mkdir, mkdtemp, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { busUsers } from "@herald/contracts";
import { readConfig, variableInfo } from "@herald/kit";
import { afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { parse, parseAllDocuments } from "yaml";
import { AnalyticsConfig } from "../../../services/analytics/src/config.ts";
import { DispatchConfig } from "../../../services/dispatch/src/config.ts";
import { GatewayConfig } from "../../../services/gateway/src/config.ts";
import { RegistryConfig } from "../../../services/registry/src/config.ts";
import { BootstrapConfig } from "../../bus/src/bootstrap-config.ts";
import { images } from "./versions.ts";

type Environment = Record<string, string>;
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
type ComposeService = {
  image: string;
  environment?: Environment;
  env_file?: string[];
  networks?: string[];
  ports?: string[];
  stop_grace_period?: string;
};
type Compose = { services: Record<string, ComposeService>; networks: Record<string, unknown> };

const root = join(import.meta.dirname, "../../..");
const read = (path: string): string => readFileSync(join(root, path), "utf8");

const schemas = {
  bootstrap: BootstrapConfig,
  gateway: GatewayConfig,
  registry: RegistryConfig,
  dispatch: DispatchConfig,
  analytics: AnalyticsConfig,
} as const;
type Part = keyof typeof schemas;
const parts = Object.keys(schemas) as Part[];
const services = parts.filter((part) => part !== "bootstrap");

const infoOf = (part: Part, name: string) => {
  const schema = Object.entries(schemas[part].shape).find(([key]) => key === name)?.[1];
  return schema && variableInfo(schema);
};
const unknownTo = (part: Part, env: Environment) => Object.keys(env).filter((name) => infoOf(part, name) === undefined);

/** What somebody who follows the page fills in. */
const filledIn = (name: string): string => {
  if (name.endsWith("_URL")) return "mongodb://user:password@mongo.example";
  return name.endsWith("_KEYS") ? `k1:${Buffer.alloc(32, 7).toString("base64")}` : "0123456789abcdef".repeat(2);
};

const compose: Compose = parse(read("docker-compose.yml"), { merge: true });
const reference = /\$\{(\w+)(?::([-?])([^}]*))?\}/g;

/** As compose substitutes: what is unset takes the default, and is an error where there is none. */
const substituted = (text: string, values: Environment): string =>
  text.replace(reference, (_all, name: string, how: string | undefined, rest: string) => {
    const value = values[name];
    if (value) return value;
    if (how !== "-") throw new Error(`${name} is not set`);
    return rest;
  });

/** As `infra/init` writes it in a clone, and what it prints. */
const initialise = async (folder: string, ...options: string[]) => {
  await mkdir(join(folder, "infra"), { recursive: true });
  await copyFile(join(root, "infra/init"), join(folder, "infra/init"));
  const { stdout } = await promisify(execFile)(join(folder, "infra/init"), options);
  const file = await readFile(join(folder, ".env"), "utf8");
  const values = Object.fromEntries(
    [...file.matchAll(/^(\w+)=(.*)$/gm)].map(([, name = "", value = ""]) => [name, value]),
  );
  return { stdout, file, values, mode: (await stat(join(folder, ".env"))).mode & 0o777 };
};

describe("infra/init", () => {
  let folder: string;
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), "herald-init-"));
  });
  afterEach(() => rm(folder, { recursive: true, force: true }));

  test("writes a secret of its own for everything that docker-compose.yml requires, for its owner alone", async () => {
    const { stdout, values, mode } = await initialise(folder);
    const required = [...read("docker-compose.yml").matchAll(reference)].flatMap(([, name, how]) =>
      how === "?" ? [name] : [],
    );
    expect(Object.keys(values).toSorted()).toEqual([...new Set(required)].toSorted());
    expect(new Set(Object.values(values)).size).toBe(Object.keys(values).length);
    expect(Object.values(values).filter((value) => value.length < 44)).toEqual([]);
    expect(mode.toString(8)).toBe("600");
    expect(stdout).toContain("docker compose up --build -d --wait");
    expect(stdout).toContain("/admin/v1/projects");
    for (const value of Object.values(values)) expect(stdout).not.toContain(value);
  });

  test("keeps what is there, and adds what a newer version needs", async () => {
    const first = await initialise(folder);
    expect((await initialise(folder)).file).toBe(first.file);
    await writeFile(join(folder, ".env"), "HERALD_ADMIN_TOKEN=mine\n", { mode: 0o644 });
    const { values, mode } = await initialise(folder);
    expect(values.HERALD_ADMIN_TOKEN).toBe("mine");
    expect(Object.keys(values).toSorted()).toEqual(Object.keys(first.values).toSorted());
    expect(mode.toString(8)).toBe("600");
  });

  test("lets pushes go to the simulators when asked to", async () => {
    const { stdout, values } = await initialise(folder, "--simulators");
    expect(values).toMatchObject({ COMPOSE_PROFILES: "simulators", HERALD_DISPATCH_CUSTOM_ENDPOINTS: "true" });
    expect(stdout).toContain("docker compose run --rm demo");
    await expect(initialise(folder, "--simulator")).rejects.toThrow("--simulator is not an option");
  });
});

describe("docker-compose.yml", () => {
  let values: Environment;
  beforeAll(async () => {
    const folder = await mkdtemp(join(tmpdir(), "herald-compose-"));
    ({ values } = await initialise(folder));
    await rm(folder, { recursive: true });
  });
  const serviceOf = (part: Part) => {
    const found = compose.services[part];
    if (found === undefined) throw new Error(`docker-compose.yml has no ${part}`);
    return found;
  };
  /** As compose makes it: `.env`, and over it what the file says. */
  const environmentOf = (part: Part, more: Environment = {}): Environment => {
    const file = { ...values, ...more };
    const own = Object.entries(serviceOf(part).environment ?? {});
    return { ...file, ...Object.fromEntries(own.map(([name, text]) => [name, substituted(String(text), file)])) };
  };

  test.each(parts)("gives %s all that it needs", (part) => {
    expect(serviceOf(part).env_file).toEqual([".env"]);
    expect(readConfig(schemas[part], environmentOf(part))).toMatchObject({ HERALD_NATS_USER: busUsers[part].user });
    expect(readConfig(schemas[part], environmentOf(part))).toHaveProperty("HERALD_NATS_PASSWORD");
    if (part !== "bootstrap") expect(environmentOf(part)[`HERALD_${part.toUpperCase()}_HOST`]).toBe("0.0.0.0");
  });

  test.each(parts)("lets every other variable of %s be set in .env", (part) => {
    const set = Object.keys(serviceOf(part).environment ?? {});
    const free = Object.keys(schemas[part].shape).filter((name) => !set.includes(name));
    const reached = environmentOf(part, Object.fromEntries(free.map((name) => [name, "set"])));
    expect(free.filter((name) => reached[name] !== "set")).toEqual([]);
  });

  test.each(parts)("shows %s no secret of another part", (part) => {
    const own = readConfig(schemas[part], environmentOf(part)) as unknown as Environment;
    const strange = Object.entries(environmentOf(part)).filter(
      ([name, value]) => value !== "" && values[name] && !(name in own),
    );
    expect(strange).toEqual([]);
  });

  test.each(Object.entries(compose.services))("runs %s with as few rights as it can have", (name, service) => {
    expect(service).toMatchObject({
      read_only: true,
      cap_drop: ["ALL"],
      security_opt: ["no-new-privileges:true"],
      pids_limit: expect.any(Number),
      mem_limit: expect.any(String),
      user: name === "nats-volume" ? "0:0" : expect.stringMatching(/^[1-9]\d*:[1-9]\d*$/),
      logging: { options: { "max-size": expect.any(String), "max-file": expect.any(String) } },
    });
    for (const port of service.ports ?? []) expect(port).toMatch(/^\$\{HERALD_PUBLISH_\w+:-127\.0\.0\.1:\d+\}:\d+$/);
    expect(service.image).toMatch(
      /^(localhost\/herald\/[a-z]+:\$\{HERALD_VERSION:-\d+\.\d+\.\d+\}|[a-z/-]+:v?\d+\.\d+\.\d+(-alpine)?)$/,
    );
  });

  test("keeps the database away from the gateway and from the outside", () => {
    const networksOf = (name: string) => compose.services[name]?.networks;
    expect(compose.networks.data).toEqual({ internal: true });
    expect(networksOf("mongo")).toEqual(["data"]);
    expect(networksOf("registry")).toEqual(["data"]);
    expect(networksOf("gateway")).toEqual(["edge"]);
  });

  test("gives each service with a database a user for that database alone", () => {
    const script = read("infra/mongo-users.js");
    for (const part of ["registry", "dispatch", "analytics"] as const) {
      expect(environmentOf(part).HERALD_MONGO_URL).toBe(
        `mongodb://herald-${part}:${values[`HERALD_MONGO_PASSWORD_${part.toUpperCase()}`]}@mongo:27017`,
      );
      const database = readConfig(schemas[part], environmentOf(part)) as unknown as Environment;
      expect(compose.services["mongo-users"]?.environment?.[`HERALD_${part.toUpperCase()}_DATABASE`]).toBe(
        `\${HERALD_${part.toUpperCase()}_DATABASE:-${database[`HERALD_${part.toUpperCase()}_DATABASE`]}}`,
      );
      expect(script).toContain(`"${part}"`);
    }
  });
});

test("one version of NATS and of MongoDB, wherever they are named", () => {
  const files = [
    "docker-compose.yml",
    "packages/local-stack/docker-compose.yml",
    ".github/workflows/ci.yml",
    "docs/how-to/deploy.md",
  ];
  const named = files.flatMap((file) =>
    [...read(file).matchAll(/\b(?:nats|mongo):(?!\d{4,5}\b)\d[\w.-]*/g)].map(([image]) => image),
  );
  expect([...new Set(named)].toSorted()).toEqual([images.mongo, images.nats]);
});

describe("infra/k8s", () => {
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
    // The address of the broker has no password: that is given apart.
    const plain = Object.keys(plainOf(part)).filter((name) => name !== "HERALD_NATS_URL");
    expect(plain.filter((name) => infoOf(part, name)?.secret)).toEqual([]);
    // Signed by one and verified by another, so it is one secret.
    expect(secretsOf(part).filter(({ secret }) => secret !== part && secret !== "open-keys")).toEqual([]);
  });

  test.each(services)("asks %s where it listens, and lets it end", (part) => {
    const config = readConfig(schemas[part], { ...plainOf(part), ...filledSecretsOf(part) });
    const own = (field: string) => Reflect.get(config, `HERALD_${part.toUpperCase()}_${field}`);
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
    expect(containerOf(part).ports?.map(({ containerPort }) => containerPort)).toEqual([port, own("METRICS_PORT")]);
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
    const made = [...read("docs/how-to/deploy.md").matchAll(/^secret ([a-z-]+) (.+)$/gm)].flatMap(
      ([, name, rest = ""]) => [...rest.matchAll(/--from-literal=([a-z-]+)=/g)].map(([, key]) => `${name} ${key}`),
    );
    const referred = parts.flatMap((part) => secretsOf(part).map(({ secret, key }) => `${secret} ${key}`));
    expect(made.toSorted()).toEqual([...new Set(referred)].toSorted());
  });
});
