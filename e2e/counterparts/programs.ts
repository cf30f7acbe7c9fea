import { cp, mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  cacheFolder,
  findBinary,
  findGo,
  provision,
  removeAtExit,
  runCommand,
  unpackDebianPackages,
  whyNoDebian,
} from "@herald/provision";
import { libraryFolders } from "../browser/chromium.ts";
import { goProgram } from "../test-tools.ts";

/** Real counterparts of Herald, from where their makers publish them, once into the user's cache. Each function throws with the reason. */

const { env } = process;
const buildTimeoutMs = 3_600_000;

export const progress = (line: string): void => void process.stderr.write(`${line}\n`);

/** The program, or undefined after it was said why what needs it is skipped. */
export const orSkipped = async <Program>(what: string, find: () => Promise<Program>): Promise<Program | undefined> => {
  try {
    return await find();
  } catch (error) {
    progress(`SKIPPED: ${what}, because ${(error as Error).message}`);
    return undefined;
  }
};

const must = async (command: string, args: readonly string[], cwd: string, more: NodeJS.ProcessEnv = {}) => {
  const { ok, stdout, why } = await runCommand(command, args, {
    cwd,
    env: { ...env, ...more },
    timeoutMs: buildTimeoutMs,
  });
  if (!ok) throw new Error(`${command} ${args[0]}: ${why} ${stdout.slice(-500)}`);
};

const keycloakVersion = "26.7.3";

/** A folder with a Keycloak of this test's own, because it writes into its folder when it starts. It needs Java 17. */
export const keycloak = async (): Promise<string> => {
  for (const tool of ["java", "mvn", "unzip"])
    if (!(await findBinary(tool, env.PATH))) throw new Error(`${tool} is not on PATH`);
  const folder = await provision(
    { cache: cacheFolder(env), name: `keycloak-${keycloakVersion}`, progress },
    async (building) => {
      progress(`Keycloak ${keycloakVersion}: downloading 180 MB from Maven Central`);
      const artifact = `org.keycloak:keycloak-quarkus-dist:${keycloakVersion}:zip`;
      const options = ["--batch-mode", "--quiet", "dependency:copy", `-Dartifact=${artifact}`, "-DoutputDirectory=."];
      await must("mvn", options, building);
      const archive = (await readdir(building)).find((name) => name.endsWith(".zip")) ?? "";
      await must("unzip", ["-q", archive], building);
      await rm(join(building, archive));
    },
  );
  const own = await mkdtemp(join(tmpdir(), "herald-keycloak-"));
  removeAtExit(own);
  await cp(join(folder, `keycloak-${keycloakVersion}`), own, { recursive: true });
  return own;
};

/** Debian's package, unpacked, and the folders of the libraries that came with it. The number is the version of the recipe. */
const fromDebian = async (name: string, packages: readonly string[], leaveOut: readonly string[] = []) => {
  const whyNot = await whyNoDebian(env);
  if (whyNot) throw new Error(whyNot);
  const folder = await provision({ cache: cacheFolder(env), name: `${name}-debian-1`, progress }, async (building) => {
    const say = (line: string) => progress(`${name}: ${line}`);
    await unpackDebianPackages(building, packages, { env, progress: say, ownSuite: true, leaveOut });
  });
  return join(folder, "root");
};

const alertmanagerVersion = "0.28.1";

/** Prometheus is Debian's. Debian's Alertmanager reads its templates below /usr alone, so that one is compiled. */
export const prometheus = async () => {
  const root = await fromDebian("prometheus", ["prometheus"], ["./usr/share/doc/*"]);
  const module = `github.com/prometheus/alertmanager/cmd/alertmanager@v${alertmanagerVersion}`;
  const folder = await goProgram(`alertmanager-${alertmanagerVersion}`, module, { env, progress });
  return { prometheus: join(root, "usr/bin/prometheus"), alertmanager: join(folder, "alertmanager") };
};

/** Firefox as it is, and the variables that it needs. */
export const firefox = async (): Promise<{ executable: string; env: Readonly<Record<string, string>> }> => {
  if (env.HERALD_FIREFOX) return { executable: env.HERALD_FIREFOX, env: {} };
  for (const name of ["firefox", "firefox-esr"]) {
    const executable = await findBinary(name, env.PATH);
    if (executable) return { executable, env: {} };
  }
  const root = await fromDebian("firefox", ["firefox-esr"]);
  return {
    executable: join(root, "usr/lib/firefox-esr/firefox-esr"),
    env: {
      LD_LIBRARY_PATH: (await libraryFolders(root)).join(":"),
      FONTCONFIG_PATH: join(root, "etc/fonts"),
    },
  };
};

const collectorVersion = "0.165.0";
const coreVersion = "1.71.0";

/** An OpenTelemetry collector with the parts that infra/observability/collector.yml names, and one that passes on what came. */
export const collector = async (): Promise<string> => {
  const go = await findGo(env);
  const builder = await goProgram(
    `otel-builder-${collectorVersion}`,
    `go.opentelemetry.io/collector/cmd/builder@v${collectorVersion}`,
    { env, progress },
  );
  const core = (path: string) => ({ gomod: `go.opentelemetry.io/collector/${path} v${collectorVersion}` });
  const provider = (name: string) => ({
    gomod: `go.opentelemetry.io/collector/confmap/provider/${name} v${coreVersion}`,
  });
  const manifest = {
    dist: { name: "collector", output_path: "./built", version: collectorVersion },
    receivers: [core("receiver/otlpreceiver")],
    processors: [core("processor/batchprocessor"), core("processor/memorylimiterprocessor")],
    exporters: [core("exporter/debugexporter"), core("exporter/otlphttpexporter")],
    providers: [provider("envprovider"), provider("fileprovider"), provider("yamlprovider")],
  };
  const folder = await provision(
    { cache: cacheFolder(env), name: `otel-collector-${collectorVersion}`, progress },
    async (building) => {
      progress(`OpenTelemetry collector ${collectorVersion}: compiling, some minutes, this once`);
      // JSON is YAML.
      await writeFile(join(building, "manifest.yaml"), JSON.stringify({ ...manifest, dist: { ...manifest.dist, go } }));
      await must(join(builder, "builder"), ["--config", "manifest.yaml"], building, {
        CGO_ENABLED: "0",
        GOFLAGS: "-buildvcs=false",
      });
    },
  );
  return join(folder, "built/collector");
};
