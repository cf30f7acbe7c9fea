import { join } from "node:path";
import type { Answer, Resolution } from "../chain.ts";
import { binaryVersion, isAtLeast } from "../processes/find-binary.ts";
import { cacheFolder } from "../provision/cache-folder.ts";
import { unpackDebianPackages, whyNoDebian } from "../provision/debian.ts";
import { libraryFolder, wrapProgram } from "../provision/debian-wrapper.ts";
import { findGo, goInstall } from "../provision/go-install.ts";
import { exists, provision } from "../provision/provision.ts";
import { type Choice, type FetchOptions, resolveProgram } from "../resolve-program.ts";
import type { ResolveOptions } from "../stack-options.ts";
import { versions } from "../versions.ts";

/** Scheduled messages and `allow_atomic` came with 2.12. */
const minVersion = "2.12";
const goModule = `github.com/nats-io/nats-server/v2@v${versions.nats}`;
/** The number is this recipe's: it rises when a newer version is needed than an earlier one may have fetched. */
const debianFolder = "nats-server-debian-1";

export const natsRemedy = `This helps: go install ${goModule}   (or set HERALD_NATS_URL to a nats-server ≥ ${minVersion} with JetStream)`;

type OwnNats = { kind: "binary"; path: string };
export type NatsChoice = Choice<OwnNats>;

/** Which nats-server is used here, and what each step of the chain said. */
export const resolveNats = (options: ResolveOptions): Promise<Resolution<NatsChoice>> =>
  resolveProgram<OwnNats>(
    {
      variable: "HERALD_NATS_URL",
      binary: "nats-server",
      minimum: minVersion,
      own: (path) => ({ kind: "binary", path }),
      fetched,
    },
    options,
  );

async function fetched(options: FetchOptions): Promise<Answer<OwnNats>> {
  const cache = cacheFolder(options.env);
  const fromGo = join(cache, `nats-server-${versions.nats}`, "nats-server");
  const fromDebian = join(cache, debianFolder, "root/usr/sbin/nats-server");
  for (const path of [fromGo, fromDebian]) {
    if (await exists(path)) return { found: { kind: "binary", path }, why: `fetched earlier: ${path}` };
  }
  if (options.onlyTell) {
    return {
      found: { kind: "binary", path: fromGo },
      why: `would be fetched: go install ${goModule}, else from Debian`,
    };
  }
  const go = await fetchWithGo(cache, options);
  if (go.found) return go;
  const debian = await fetchFromDebian(cache, options).catch((error: Error) => ({ why: error.message }));
  return "found" in debian ? debian : { why: `${go.why}; ${debian.why}` };
}

async function fetchWithGo(cache: string, { env, progress }: FetchOptions): Promise<Answer<OwnNats>> {
  if (!(await findGo(env))) return { why: "go is not installed" };
  const name = `nats-server-${versions.nats}`;
  try {
    const folder = await provision({ cache, name, progress }, async (building) => {
      progress(`nats-server ${versions.nats}: go install, about half a minute, this once`);
      const { ok, why } = await goInstall(goModule, building, env);
      if (!ok) throw new Error(why);
    });
    return { found: { kind: "binary", path: join(folder, "nats-server") }, why: `fetched: go install ${goModule}` };
  } catch (error) {
    return { why: error instanceof Error ? error.message : String(error) };
  }
}

async function fetchFromDebian(cache: string, { env, progress }: FetchOptions): Promise<Answer<OwnNats>> {
  const missing = await whyNoDebian(env);
  if (missing) return { why: missing };
  const program = "usr/sbin/nats-server";
  const folder = await provision({ cache, name: debianFolder, progress }, async (building) => {
    const root = await unpackDebianPackages(building, ["nats-server"], {
      env,
      progress: (line) => progress(`nats-server: ${line}`),
    });
    await wrapProgram(root, program, [libraryFolder()]);
    const version = await binaryVersion(join(root, program));
    if (!version || !isAtLeast(version, minVersion))
      throw new Error(`Debian's nats-server is ${version ?? "unusable"}`);
  });
  return { found: { kind: "binary", path: join(folder, "root", program) }, why: "fetched: Debian package nats-server" };
}
