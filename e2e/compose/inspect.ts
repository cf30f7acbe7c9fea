import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";

type Here = { readonly cwd: string; readonly env: NodeJS.ProcessEnv };
type Say = (line: string) => void;
type Container = {
  Name: string;
  Config: { User: string; Labels: Record<string, string> };
  HostConfig: {
    ReadonlyRootfs: boolean;
    CapDrop: string[] | null;
    SecurityOpt: string[] | null;
    PidsLimit: number | null;
    Memory: number;
    LogConfig: { Config: Record<string, string> };
    PortBindings: Record<string, { HostIp: string }[] | null> | null;
  };
};

const mebibyte = 1_048_576;
/** The maximum size of an image without its base. */
const maxImageBytes = 50_000_000;

const runs = /^\/herald\/(app\/(dist\/(.*\.js(\.map)?|THIRD_PARTY_NOTICES)|package\.json)|infra\/healthcheck)$/;
/** Files of the console, which only the gateway has: the page and its assets, also compressed. */
const consoleFile =
  /^\/herald\/app\/dist\/console\/(assets\/)?([\w.-]+\.(html|js|css|svg)|third-party-notices\.md)(\.gz)?$/;

const docker = async (here: Here, ...args: string[]): Promise<string> =>
  (await promisify(execFile)("docker", args, { ...here, maxBuffer: 64_000_000 })).stdout.trim();

/** Checks that images contain only compiled JavaScript, do not run as root, and are little larger than the base image. */
export const checkImages = async (here: Here, services: readonly string[], say: Say): Promise<void> => {
  const sizeOf = async (image: string) =>
    Number(await docker(here, "image", "inspect", "--format", "{{.Size}}", image));
  const [, node] =
    /^FROM (?:--\S+ )?(node:\S+)/m.exec(await readFile(join(here.cwd, "infra/Dockerfile"), "utf8")) ?? [];
  const base = await sizeOf(String(node));
  for (const service of ["bus", "simulators", ...services]) {
    const image = `localhost/herald/${service}:${here.env.HERALD_VERSION}`;
    const above = (await sizeOf(image)) - base;
    say(`image ${service}: ${(above / 1e6).toFixed(1)} MB above its base`);
    assert.ok(above <= maxImageBytes, `${image} is too large`);
    const files = await docker(
      here,
      "run",
      "--rm",
      "--network",
      "none",
      image,
      "find",
      "/herald",
      "/data",
      "-type",
      "f",
    );
    const strange = files
      .split("\n")
      .filter((file) => !runs.test(file) && !(service === "gateway" && consoleFile.test(file)));
    assert.deepEqual(strange, [], `${image} has files that nothing runs`);
    const config = JSON.parse(await docker(here, "image", "inspect", "--format", "{{json .Config}}", image));
    assert.equal(config.User, "node");
    assert.ok(config.Healthcheck?.Test, "HEALTHCHECK");
    assert.equal(config.Labels["org.opencontainers.image.title"], `herald-${service}`);
  }
};

/** Checks that every container of the project is hardened and publishes ports only on this machine. */
export const checkContainers = async (here: Here, services: readonly string[], say: Say): Promise<void> => {
  const ids = (await docker(here, "compose", "ps", "--all", "--quiet")).split("\n");
  const containers: Container[] = JSON.parse(await docker(here, "inspect", ...ids));
  for (const { Config, HostConfig } of containers) {
    const service = Config.Labels["com.docker.compose.service"] ?? "";
    assert.equal(HostConfig.ReadonlyRootfs, true, service);
    assert.deepEqual(HostConfig.CapDrop, ["ALL"], service);
    assert.ok(HostConfig.SecurityOpt?.includes("no-new-privileges:true"), service);
    assert.ok(Number(HostConfig.PidsLimit) > 0 && HostConfig.Memory > 0, `${service} has limits`);
    assert.ok(HostConfig.LogConfig.Config["max-size"], `${service} rotates its log`);
    assert.match(Config.User, service.endsWith("-volume") ? /^0:0$/ : /^[1-9]\d*:[1-9]\d*$/, service);
    for (const bindings of Object.values(HostConfig.PortBindings ?? {}))
      for (const { HostIp } of bindings ?? []) assert.equal(HostIp, "127.0.0.1", service);
  }
  say(`${containers.length} containers: read-only, without capabilities, with limits, published on loopback alone`);
  for (const service of services) {
    const status = await docker(here, "compose", "exec", "-T", service, "cat", "/proc/1/status");
    const resident = Number(/VmRSS:\s+(\d+) kB/.exec(status)?.[1]) * 1_024;
    say(`${service}: ${Math.round(resident / mebibyte)} MiB resident when idle`);
  }
};
