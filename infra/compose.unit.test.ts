import { execFile } from "node:child_process";
import { copyFile, mkdir, mkdtemp, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { busUsers } from "@herald/bus/permissions";
import {
  compose,
  type DeployedPart,
  type PartEnvironment,
  parts,
  read,
  readCompose,
  root,
  schemas,
} from "@herald/docs/deployed-parts";
import { readConfig } from "@herald/kit";
import { images } from "@herald/provision";
import { afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { parseAllDocuments } from "yaml";

const reference = /\$\{(\w+)(?::([-?])([^}]*))?\}/g;

/** Substitutes variables as compose does: an unset variable takes its default, and is an error without one. */
const substituted = (text: string, values: PartEnvironment): string =>
  text.replace(reference, (_all, name: string, how: string | undefined, rest: string) => {
    const value = values[name];
    if (value) return value;
    if (how !== "-") throw new Error(`${name} is not set`);
    return rest;
  });

/** Runs `infra/init` in a new folder and returns the written `.env` and the output. */
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
    const { stdout, values: all, mode } = await initialise(folder);
    const { HERALD_GATEWAY_ADMIN_PORT: adminPort, ...values } = all;
    expect(adminPort).toBe("8089");
    const required = [...read("docker-compose.yml").matchAll(reference)].flatMap(([, name, how]) =>
      how === "?" ? [name] : [],
    );
    expect(Object.keys(values).toSorted()).toEqual([...new Set(required)].toSorted());
    expect(new Set(Object.values(values)).size).toBe(Object.keys(values).length);
    expect(Object.values(values).filter((value) => value.length < 44)).toEqual([]);
    expect(mode.toString(8)).toBe("600");
    expect(stdout).toContain("docker compose up -d --wait");
    expect(stdout).toContain("http://127.0.0.1:8089/admin/v1/projects");
    expect(stdout).toContain("http://127.0.0.1:8089/console#code=");
    for (const value of Object.values(values)) expect(stdout).not.toContain(value);
  });

  test("keeps what is there, and adds what a newer version needs", async () => {
    const first = await initialise(folder);
    expect((await initialise(folder)).file).toBe(first.file);
    await writeFile(join(folder, ".env"), "HERALD_ADMIN_TOKEN=mine\n", { mode: 0o644 });
    const { stdout, values, mode } = await initialise(folder);
    expect(values.HERALD_ADMIN_TOKEN).toBe("mine");
    // An upgrade does not move `/admin/v1` to another port than its users expect.
    const { HERALD_GATEWAY_ADMIN_PORT: _, ...needed } = first.values;
    expect(Object.keys(values).toSorted()).toEqual(Object.keys(needed).toSorted());
    expect(stdout).toContain("http://127.0.0.1:8080/console#code=");
    expect(mode.toString(8)).toBe("600");
  });

  test("lets pushes go to the simulators when asked to", async () => {
    const { stdout, values } = await initialise(folder, "--simulators");
    expect(values).toMatchObject({ COMPOSE_PROFILES: "simulators", HERALD_DISPATCH_CUSTOM_ENDPOINTS: "true" });
    expect(stdout).toContain("docker compose run --rm demo");
    await expect(initialise(folder, "--simulator")).rejects.toThrow("--simulator is not an option");
  });

  test("puts Caddy in front when asked to, and lets the gateway trust one proxy", async () => {
    const { values } = await initialise(folder, "--tls", "push.example.com", "--simulators");
    expect(values).toMatchObject({
      COMPOSE_PROFILES: "simulators,tls",
      HERALD_TLS_NAME: "push.example.com",
      HERALD_PUBLISH_TLS: "443",
      HERALD_GATEWAY_TRUST_PROXY: "1",
      HERALD_GATEWAY_ADMIN_TRUST_PROXY: "1",
    });
    await expect(initialise(folder, "--tls")).rejects.toThrow("--tls takes the name");
    await expect(initialise(folder, "--tls", "https://push.example.com/")).rejects.toThrow("--tls takes the name");
    await writeFile(join(folder, ".env"), "COMPOSE_PROFILES=observability\n");
    await expect(initialise(folder, "--tls", "push.example.com")).rejects.toThrow(
      ".env names other profiles: add tls to its COMPOSE_PROFILES",
    );
  });

  test("prints for Kubernetes what compose reads in .env, and passwords in URLs as a URL has them", async () => {
    const written = {
      GATEWAY: [`'x $y "z'`, 'x $y "z'],
      REGISTRY: ['"p\\"q\\\\r\\$s" # since "May"', 'p"q\\r$s'],
      DISPATCH: ["12345e67 # since May", "12345e67"],
      ANALYTICS: ["x#y  ", "x#y"],
      BOOTSTRAP: ['"it\'s"', "it's"],
    };
    const url = "a@b:c/d?e#f[g]%40 h";
    const lines = Object.entries(written).map(([name, [value]]) => `HERALD_NATS_PASSWORD_${name}=${value}\n`);
    await writeFile(join(folder, ".env"), `${lines.join("")}HERALD_MONGO_PASSWORD_REGISTRY='${url}'\n`);
    const { stdout } = await initialise(folder, "--kubernetes");
    const secrets = parseAllDocuments(stdout).map((one) => one.toJS());
    for (const [name, [, value]] of Object.entries(written)) {
      const of = secrets.find(({ metadata }) => metadata.name === `herald-${name.toLowerCase()}`).stringData;
      expect(of["nats-password"], name).toBe(value);
      expect(secrets.find(({ metadata }) => metadata.name === "herald-nats").stringData).toMatchObject({
        [`HERALD_NATS_PASSWORD_${name}`]: value,
      });
    }
    const [, password = ""] =
      /^mongodb:\/\/herald-registry:([^@:/?#[\] ]+)@mongo$/.exec(
        secrets.find(({ metadata }) => metadata.name === "herald-registry").stringData["mongo-url"],
      ) ?? [];
    expect(decodeURIComponent(password)).toBe(url);
  });

  test("names pages where they are: in a checkout, and from the archive of a release", async () => {
    await mkdir(join(folder, "docs"));
    expect((await initialise(folder)).stdout).toContain("each person: docs/how-to/operators.md");
    await rm(join(folder, "docs"), { recursive: true });
    await writeFile(join(folder, "README.md"), "- The documentation: https://example.com/herald/tree/v1/docs\n");
    const { stdout } = await initialise(folder);
    expect(stdout).toContain("each person: https://example.com/herald/tree/v1/docs/how-to/operators.md");
    expect(stdout).toContain("provider: https://example.com/herald/tree/v1/docs/how-to/connect-providers.md");
  });

  test("uses PostgreSQL when asked to, in a checkout and in an archive", async () => {
    const { values } = await initialise(folder, "--database", "postgresql", "--simulators");
    expect(values).toMatchObject({
      COMPOSE_FILE: "docker-compose.yml:infra/postgresql/compose.yaml",
      COMPOSE_PROFILES: "simulators",
    });
    await expect(initialise(folder, "--database", "mongodb")).rejects.toThrow("remove that line");
    await expect(initialise(folder, "--database", "mysql")).rejects.toThrow("mongodb or postgresql, not 'mysql'");
    await expect(initialise(folder, "--database")).rejects.toThrow("mongodb or postgresql, not ''");
    await rm(join(folder, ".env"));
    await writeFile(join(folder, "compose.yaml"), "");
    const archive = await initialise(folder, "--database", "postgresql");
    expect(archive.values.COMPOSE_FILE).toBe("compose.yaml:infra/postgresql/compose.yaml");
  });
});

test("PostgreSQL has as few rights as MongoDB, and only the network of the databases", () => {
  const own = readCompose("infra/postgresql/compose.yaml").services;
  expect(own.postgresql).toMatchObject({
    read_only: true,
    cap_drop: ["ALL"],
    security_opt: ["no-new-privileges:true"],
    user: "999:999",
    networks: ["data"],
  });
  expect(own.postgresql).not.toHaveProperty("ports");
  // What the file says nothing of, such as networks and rights, stays as docker-compose.yml has it.
  for (const name of ["mongo", "mongo-users"]) expect(compose.services).toHaveProperty(name);
  expect(own.mongo).not.toHaveProperty("networks");
});

describe("docker-compose.yml", () => {
  let values: PartEnvironment;
  beforeAll(async () => {
    const folder = await mkdtemp(join(tmpdir(), "herald-compose-"));
    ({ values } = await initialise(folder));
    await rm(folder, { recursive: true });
  });
  const serviceOf = (part: DeployedPart) => {
    const found = compose.services[part];
    if (found === undefined) throw new Error(`docker-compose.yml has no ${part}`);
    return found;
  };
  /** The environment that compose makes: `.env`, overridden by the compose file. */
  const environmentOf = (part: DeployedPart, more: PartEnvironment = {}): PartEnvironment => {
    const file = { ...values, ...more };
    const own = Object.entries(serviceOf(part).environment ?? {});
    return { ...file, ...Object.fromEntries(own.map(([name, text]) => [name, substituted(String(text), file)])) };
  };

  test.each(parts)("gives %s all that it needs", (part) => {
    expect(serviceOf(part).env_file).toEqual([".env"]);
    expect(readConfig(schemas[part], environmentOf(part))).toMatchObject({ HERALD_NATS_USER: busUsers[part].user });
    expect(readConfig(schemas[part], environmentOf(part))).toHaveProperty("HERALD_NATS_PASSWORD");
    if (part !== "bootstrap") expect(environmentOf(part).HERALD_HOST).toBe("0.0.0.0");
  });

  test.each(parts)("lets every other variable of %s be set in .env", (part) => {
    const set = Object.keys(serviceOf(part).environment ?? {});
    const free = Object.keys(schemas[part].shape).filter((name) => !set.includes(name));
    const reached = environmentOf(part, Object.fromEntries(free.map((name) => [name, "set"])));
    expect(free.filter((name) => reached[name] !== "set")).toEqual([]);
  });

  test.each(parts)("shows %s no secret of another part", (part) => {
    const isSecret = (name: string) => values[name] !== undefined && name !== "HERALD_GATEWAY_ADMIN_PORT";
    const own = readConfig(schemas[part], environmentOf(part)) as unknown as PartEnvironment;
    const strange = Object.entries(environmentOf(part)).filter(
      ([name, value]) => value !== "" && isSecret(name) && !(name in own),
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
      user: name.endsWith("-volume") ? "0:0" : expect.stringMatching(/^[1-9]\d*:[1-9]\d*$/),
      logging: { options: { "max-size": expect.any(String), "max-file": expect.any(String) } },
    });
    for (const port of service.ports ?? []) expect(port).toMatch(/^\$\{HERALD_PUBLISH_\w+:-127\.0\.0\.1:\d+\}:\d+$/);
    expect(service.image).toMatch(
      /^(localhost\/herald\/[a-z]+:\$\{HERALD_VERSION:-\d+\.\d+\.\d+\}|[a-z/-]+:v?\d+\.\d+\.\d+(-alpine)?(@sha256:[0-9a-f]{64})?)$/,
    );
  });

  test("hides the proxy from parts that call nothing outside, however its variable is written", () => {
    const proxy = "http://user:secret@proxy:3128";
    for (const part of ["bootstrap", "registry"] as const)
      expect(Object.values(environmentOf(part, { HTTPS_PROXY: proxy, https_proxy: proxy }))).not.toContain(proxy);
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
      const config = readConfig(schemas[part], environmentOf(part)) as unknown as PartEnvironment;
      expect(compose.services["mongo-users"]?.environment?.HERALD_DATABASE_PREFIX).toBe(
        `\${HERALD_DATABASE_PREFIX:-${config.HERALD_DATABASE_PREFIX}}`,
      );
      expect(script).toContain(`"${part}"`);
    }
  });
});

test("every broker that reads infra/nats.conf is started by infra/start-nats, which quotes its passwords", () => {
  for (const path of ["docker-compose.yml", "tools/provision/docker-compose.yml"])
    expect(readCompose(path).services.nats, path).toMatchObject({
      entrypoint: ["/bin/sh", "/etc/nats/start-nats"],
      environment: { HERALD_NATS_STORAGE: expect.stringContaining(":-8GiB}") },
    });
});

test("one version of NATS and of MongoDB, wherever they are named", () => {
  const files = [
    "docker-compose.yml",
    "tools/provision/docker-compose.yml",
    ".github/workflows/ci.yml",
    "docs/how-to/deploy.md",
  ];
  const named = files.flatMap((file) =>
    [...read(file).matchAll(/\b(?:nats|mongo):(?!\d{4,5}\b)\d[\w.-]*/g)].map(([image]) => image),
  );
  expect([...new Set(named)].toSorted()).toEqual([images.mongo, images.nats]);
});
