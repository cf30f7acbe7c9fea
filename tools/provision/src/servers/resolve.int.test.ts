import { chmod, mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { resolveMongo, startMongo } from "./mongo.ts";
import { resolveNats, startNats } from "./nats.ts";

/** A machine with only the programs that the test puts into these folders, which cannot fetch anything. */
let folder: string;
let env: NodeJS.ProcessEnv;
const progress = () => {};

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "herald-resolve-"));
  await mkdir(join(folder, "bin"));
  env = {
    PATH: join(folder, "bin"),
    HERALD_CACHE_DIR: join(folder, "cache"),
    GOROOT: join(folder, "go"),
  };
  vi.stubEnv("MONGOMS_DOWNLOAD_MIRROR", "http://127.0.0.1:9"); // the discard port, which is closed
});
afterEach(async () => {
  vi.unstubAllEnvs();
  await rm(folder, { recursive: true, force: true });
});

async function install(name: string, script: string, where = join(folder, "bin")): Promise<void> {
  await mkdir(where, { recursive: true });
  await writeFile(join(where, name), `#!/bin/sh\n${script}\n`);
  await chmod(join(where, name), 0o755);
}

const servers = [
  {
    resolve: resolveNats,
    variable: "HERALD_NATS_URL",
    binary: "nats-server",
    good: "nats-server: v2.15.2",
    old: "nats-server: v2.9.24",
    refusal: "is 2.9.24, and ≥ 2.12 is needed",
  },
  {
    resolve: resolveMongo,
    variable: "HERALD_MONGO_URL",
    binary: "mongod",
    good: "db version v8.0.4",
    old: "db version v6.0.9",
    refusal: "is 6.0.9, and ≥ 7.0 is needed",
  },
] as const;

describe.each(servers)("$binary", ({ resolve, variable, binary, good, old, refusal }) => {
  const docker = (start: () => Promise<{ url: string; stop: () => Promise<void> }>) => ({ what: "a container", start });
  const service = { url: "x://container", stop: async () => {} };

  test("comes from the environment before all else", async () => {
    await install(binary, `echo "${good}"`);
    await install("docker", "echo 28.2.2");
    const { choice, attempts } = await resolve({
      env: { ...env, [variable]: "x://elsewhere" },
      progress,
      docker: docker(async () => service),
    });
    expect(choice).toEqual({ kind: "url", url: "x://elsewhere" });
    expect(attempts).toEqual([{ step: "environment", chosen: true, why: `${variable} is set` }]);
  });

  test("comes from Docker when its engine answers", async () => {
    await install(binary, `echo "${good}"`);
    await install("docker", "echo 28.2.2");
    const { choice } = await resolve({ env, progress, docker: docker(async () => service) });
    expect(choice).toEqual({ kind: "container", service });
  });

  test("comes from PATH when Docker has no engine, or cannot start it", async () => {
    await install(binary, `echo "${good}"`);
    await install("docker", 'echo "Cannot connect to the Docker daemon" >&2; exit 1');
    const noEngine = await resolve({ env, progress, docker: docker(async () => service) });
    expect(noEngine.choice).toMatchObject({ path: join(folder, "bin", binary) });
    expect(noEngine.attempts[1]?.why).toBe("no Docker engine: Cannot connect to the Docker daemon");

    await install("docker", "echo 28.2.2");
    const noImage = await resolve({ env, progress, docker: docker(() => Promise.reject(new Error("no such image"))) });
    expect(noImage.choice).toMatchObject({ path: join(folder, "bin", binary) });
    expect(noImage.attempts[1]?.why).toBe("Docker 28.2.2 answers, but no such image");
  });

  test("is refused on PATH when it is too old or does not run", async () => {
    await install(binary, `echo "${old}"`);
    const tooOld = await resolve({ env, progress });
    expect(tooOld.choice).toBeUndefined();
    expect(tooOld.attempts[2]?.why).toBe(`${join(folder, "bin", binary)} ${refusal}`);

    await install(binary, "exit 1");
    const broken = await resolve({ env, progress });
    expect(broken.attempts[2]?.why).toBe(`${join(folder, "bin", binary)} names no version`);
  });

  test("says only what it would fetch when asked to tell", async () => {
    const { choice, attempts } = await resolve({ env, progress, onlyTell: true });
    expect(choice).toBeDefined();
    expect(attempts.at(-1)?.why).toContain("would be fetched");
  });
});

test("a nats-server that was fetched earlier is used as it is", async () => {
  await install("nats-server", "exit 1", join(folder, "cache", "nats-server-2.15.2"));
  const { choice, attempts } = await resolveNats({ env, progress });
  expect(choice).toEqual({ kind: "binary", path: join(folder, "cache/nats-server-2.15.2/nats-server") });
  expect(attempts.at(-1)).toMatchObject({ step: "cache", chosen: true });
});

test("where nothing can provide them, the error says what was tried and what helps", async () => {
  const options = { dataDir: join(folder, "data"), port: 0, env, progress };
  await expect(startNats(options)).rejects.toThrow(
    [
      "This machine has no nats-server. Tried:",
      "  environment HERALD_NATS_URL is not set",
      "  docker      Docker is not used here",
      "  path        nats-server is not on PATH",
      `  cache       apt-get is not installed; go is neither on PATH nor in ${join(folder, "go/bin")}`,
      "One of these is enough: a running Docker engine; Go (https://go.dev/dl) on PATH, in $GOROOT, /usr/local/go or ~/go; nats-server ≥ 2.12 on PATH; HERALD_NATS_URL",
    ].join("\n"),
  );
  await expect(startMongo(options)).rejects.toThrow(
    /mongod is not on PATH\n {2}cache {7}127\.0\.0\.1:9 is out of reach; PostgreSQL (with DocumentDB comes from Debian packages, but apt-get is not|does not run as root)/,
  );
});
