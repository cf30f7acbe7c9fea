import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, onTestFinished, test } from "vitest";
import { imageNames } from "../release/images.ts";

/** The one container without an engine: what its files say about users, secrets and ports. test:one runs it. */

const read = (path: string) => readFileSync(join(import.meta.dirname, "..", path), "utf8");
const recipe = read("Dockerfile");

/** What a part finds in its environment. `read_settings` is given a file like that of a volume. */
const environmentOf = async (
  part: string,
  given: Record<string, string> = {},
  lines = "",
): Promise<Record<string, string>> => {
  const settings = ["HERALD_ADMIN_TOKEN", "HERALD_OPEN_KEYS", "GRAFANA_PASSWORD"]
    .concat(["REGISTRY", "DISPATCH", "ANALYTICS"].map((service) => `HERALD_${service}_MASTER_KEYS`))
    .concat(
      ["GATEWAY", "REGISTRY", "DISPATCH", "ANALYTICS", "BOOTSTRAP", "ADMIN"].map(
        (user) => `HERALD_NATS_PASSWORD_${user}`,
      ),
    )
    .concat(["REGISTRY", "DISPATCH", "ANALYTICS", "ADMIN"].map((user) => `HERALD_MONGO_PASSWORD_${user}`));
  // infra/init writes keys without quotes; who brings a file of compose may have some.
  const file =
    lines +
    settings.map((name) => (name.endsWith("_KEYS") ? `${name}=k1:made=\n` : `${name}='made ${name}='\n`)).join("");
  const script = `. ./infra/all/parts; eval "$(declare -f read_settings | sed 's|/data/.env|/dev/fd/9|')"; prepare ${part} 9<<<"$FILE"; unset FILE; env -0`;
  const { stdout } = await promisify(execFile)("bash", ["-euc", script], {
    cwd: join(import.meta.dirname, "../.."),
    env: { PATH: process.env.PATH, FILE: file, ...given },
  });
  const pairs = stdout.split("\0").map((line) => line.split(/=(.*)/s));
  return Object.fromEntries(pairs.filter(([name = ""]) => name.startsWith("HERALD_")));
};
const secrets = (environment: Record<string, string>) =>
  Object.keys(environment)
    .filter((name) => /TOKEN|KEYS|PASSWORD|MONGO_URL/.test(name))
    .toSorted();

test("each part has its own secrets alone, and listens on loopback but for the gateway", async () => {
  const parts = ["gateway", "registry", "dispatch", "analytics", "bus bootstrap"];
  const environments = await Promise.all(parts.map((part) => environmentOf(part)));
  expect(environments.map((environment, at) => [parts[at], ...secrets(environment)])).toEqual([
    ["gateway", "HERALD_ADMIN_TOKEN", "HERALD_NATS_PASSWORD", "HERALD_OPEN_KEYS"],
    ["registry", "HERALD_MONGO_URL", "HERALD_NATS_PASSWORD", "HERALD_REGISTRY_MASTER_KEYS"],
    ["dispatch", "HERALD_DISPATCH_MASTER_KEYS", "HERALD_MONGO_URL", "HERALD_NATS_PASSWORD", "HERALD_OPEN_KEYS"],
    ["analytics", "HERALD_ANALYTICS_MASTER_KEYS", "HERALD_MONGO_URL", "HERALD_NATS_PASSWORD"],
    ["bus bootstrap", "HERALD_NATS_PASSWORD"],
  ]);
  expect(environments.at(-1)).toMatchObject({
    HERALD_NATS_USER: "herald-bootstrap",
    HERALD_NATS_PASSWORD: "made HERALD_NATS_PASSWORD_BOOTSTRAP=",
  });
  expect(environments[0]).toMatchObject({ HERALD_OPEN_KEYS: "k1:made=" });
  const hosts = environments.map(({ HERALD_HOST, HERALD_METRICS_HOST }) => `${HERALD_HOST} ${HERALD_METRICS_HOST}`);
  expect(hosts).toEqual(["0.0.0.0 127.0.0.1", ...Array(4).fill("127.0.0.1 127.0.0.1")]);
});

test("what the container was started with comes first: stores elsewhere, keys, and secrets in files", async () => {
  const environment = await environmentOf("dispatch", {
    HERALD_NATS_URL: "nats://elsewhere:4222",
    HERALD_MONGO_URL: "mongodb://me@elsewhere",
    HERALD_OPEN_KEYS_FILE: "/run/secrets/open",
    HERALD_DISPATCH_MASTER_KEYS: "given",
    HERALD_PORT: "1",
  });
  expect(environment).toMatchObject({
    HERALD_NATS_URL: "nats://elsewhere:4222",
    HERALD_MONGO_URL: "mongodb://me@elsewhere",
    HERALD_OPEN_KEYS_FILE: "/run/secrets/open",
    HERALD_DISPATCH_MASTER_KEYS: "given",
  });
  expect(environment).not.toHaveProperty("HERALD_OPEN_KEYS");
  expect(environment).not.toHaveProperty("HERALD_PORT");
});

test("a password in /data/.env may have any character and either quotes, in a URL, too", async () => {
  const password = "p@ss/w:r%d# é?[1]+&=";
  const environments = await Promise.all(
    [`'${password}'`, `"${password}"`, password].map((value) =>
      environmentOf("registry", {}, `HERALD_MONGO_PASSWORD_REGISTRY=${value}\n`),
    ),
  );
  for (const { HERALD_MONGO_URL = "" } of environments)
    expect(decodeURIComponent(new URL(HERALD_MONGO_URL).password)).toBe(password);
});

test("the broker's disk is what the container was started with, a line of /data/.env, or 2 GiB", async () => {
  const line = "HERALD_NATS_STORAGE=1GiB\n";
  const environments = await Promise.all([
    environmentOf("bus bootstrap", { HERALD_NATS_STORAGE: "3GiB" }, line),
    environmentOf("bus bootstrap", {}, line),
    environmentOf("bus bootstrap"),
  ]);
  expect(environments.map(({ HERALD_NATS_STORAGE }) => HERALD_NATS_STORAGE)).toEqual(["3GiB", "1GiB", "2GiB"]);
});

test("a backup has the keys that the container uses, not those of the volume that it was started without", async () => {
  const folder = await mkdtemp(join(tmpdir(), "herald-one-keys-"));
  onTestFinished(() => rm(folder, { recursive: true }));
  const names = ["OPEN", "REGISTRY_MASTER", "DISPATCH_MASTER", "ANALYTICS_MASTER"].map((name) => `HERALD_${name}_KEYS`);
  const file = `HERALD_ADMIN_TOKEN=token\n${names.map((name) => `${name}=k1:made=\n`).join("")}`;
  await writeFile(join(folder, ".env"), file);
  await writeFile(join(folder, "open"), "k1:file=\n");
  const script = `. ./infra/all/parts
    eval "$(declare -f read_settings settings_with_keys | sed "s|/data|$FOLDER|")"; settings_with_keys`;
  const { stdout } = await promisify(execFile)("bash", ["-euc", script], {
    cwd: join(import.meta.dirname, "../.."),
    env: {
      ...{ PATH: process.env.PATH, FOLDER: folder },
      HERALD_OPEN_KEYS_FILE: join(folder, "open"),
      HERALD_DISPATCH_MASTER_KEYS: "k1:given=",
    },
  });
  expect(stdout.trim().split("\n")).toEqual([
    "HERALD_ADMIN_TOKEN=token",
    "HERALD_OPEN_KEYS=k1:file=",
    "HERALD_REGISTRY_MASTER_KEYS=k1:made=",
    "HERALD_DISPATCH_MASTER_KEYS=k1:given=",
    "HERALD_ANALYTICS_MASTER_KEYS=k1:made=",
  ]);
});

test.each([
  [{}, "5368709120"],
  [{ HERALD_NATS_STORAGE: "8GiB" }, "8589934592"],
])("the broker starts with no less than its streams have, with %j", async (given, expected) => {
  const folder = await mkdtemp(join(tmpdir(), "herald-one-broker-"));
  onTestFinished(() => rm(folder, { recursive: true }));
  const stream = join(folder, "nats/jetstream/HERALD/streams/PUSH_CMD");
  await mkdir(stream, { recursive: true });
  await writeFile(join(stream, "meta.inf"), JSON.stringify({ name: "PUSH_CMD", max_bytes: 5 * 2 ** 30 }));
  await writeFile(join(folder, "nats-server"), `#!/bin/sh\necho "$HERALD_NATS_STORAGE"; cat "$2"`, { mode: 0o755 });
  const script = `. ./infra/all/parts
    eval "$(declare -f read_settings broker_settings | sed "s|/data/.env|/dev/null|; s|/data|$FOLDER|; s|/herald/|./|")"
    broker_settings >"$FOLDER/nats.conf"
    read_settings && ./infra/start-nats -c "$FOLDER/nats.conf"`;
  const { stdout } = await promisify(execFile)("bash", ["-euc", script], {
    cwd: join(import.meta.dirname, "../.."),
    env: { PATH: `${folder}:${process.env.PATH}`, FOLDER: folder, ...given },
  });
  const [limit, ...configuration] = stdout.split("\n");
  expect(limit).toBe(expected);
  expect(configuration.join("\n")).toMatch(
    /listen: "127\.0\.0\.1:4222"[\s\S]*store_dir: ".*\/nats"\n[^}]*max_file_store: \$HERALD_NATS_STORAGE\n/,
  );
});

test("its programs start with the settings of V8 that their own images have, and every part has a user", () => {
  const [, command = ""] = /^CMD \["node", ([^\]]+), \\?\s*"app/ms.exec(recipe.replaceAll("\\\n", "")) ?? [];
  const flags = [...recipe.matchAll(/"(--[a-z-]+(?:=\d+)?)"/g)].map(([, flag = ""]) => flag);
  expect(command || flags.length).toBeTruthy();
  for (const flag of flags.filter(
    (one) => one.startsWith("--max-semi") || one.includes("old-space") || one.includes("heap"),
  ))
    expect(read("all/parts")).toContain(flag);
  const [, users = ""] = /for user in ([a-z ]+);/.exec(recipe) ?? [];
  // Ids on volumes: the order is part of what is stored.
  expect(users.split(" ")).toEqual([
    "nats",
    "ferretdb",
    "gateway",
    "registry",
    "dispatch",
    "analytics",
    "bus",
    "simulators",
  ]);
  expect(imageNames).toContain("herald-all");
});
