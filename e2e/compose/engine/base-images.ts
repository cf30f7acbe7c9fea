import { cp, link, mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { cacheFolder, debianSite, provision, resolveMongo, runCommand, versions } from "@herald/provision";
import { goProgram } from "../../test-tools.ts";
import type { LocalEngine } from "./local-engine.ts";

/** The suite below all images but PostgreSQL's, and that one's. */
const suites = ["bookworm", "forky"] as const;
const timeoutMs = 600_000;
/** nats-server as a Go module, whose versions are those of the images. */
const natsModule = `github.com/nats-io/nats-server/v2@v${versions.nats}`;

export type BaseImages = Readonly<Record<"node" | "nats" | "caddy" | "mongo" | "debian" | "ferretdb", string>>;
type Settings = { readonly engine: LocalEngine; readonly progress: (line: string) => void };

const must = async ({ engine }: Settings, command: string, args: readonly string[], env: NodeJS.ProcessEnv = {}) => {
  const { ok, stdout, why } = await runCommand(command, args, { env: { ...engine.env, ...env }, timeoutMs });
  if (!ok) throw new Error(`${command} ${args[0]}: ${why}`);
  return stdout;
};

/** Builds a minimal Debian with debootstrap and this machine's certificate authorities. */
const importDebian = async (settings: Settings, suite: (typeof suites)[number], image: string): Promise<string> => {
  const { engine, progress } = settings;
  const { root } = engine.programs;
  const folder = await provision(
    { cache: cacheFolder(engine.env), name: `debian-${suite}-1`, progress },
    async (folder) => {
      progress(`debootstrap ${suite}, about a minute, this once`);
      const args = ["--variant=minbase", "--include=ca-certificates", suite, join(folder, "root")];
      const site = await debianSite(engine.env);
      const bootstrap = { DEBOOTSTRAP_DIR: join(root, "usr/share/debootstrap"), LC_ALL: "C" };
      // By its script, because an older debootstrap does not know a newer suite.
      const script = join(bootstrap.DEBOOTSTRAP_DIR, "scripts/sid");
      await must(settings, join(root, "usr/sbin/debootstrap"), [...args, site, script], bootstrap);
      await rm(join(folder, "root/var/cache/apt"), { recursive: true, force: true });
      await rm(join(folder, "root/var/lib/apt/lists"), { recursive: true, force: true });
    },
  );
  const authorities = "/etc/ssl/certs/ca-certificates.crt";
  await cp(authorities, join(folder, "root", authorities));
  // A mirror may be some weeks behind, and a suite in development expires after one.
  await writeFile(join(folder, "root/etc/apt/apt.conf.d/99old-mirror"), 'Acquire::Check-Valid-Until "false";\n');
  progress(`importing ${image}`);
  await must(settings, "sh", ["-c", `tar -C "$1" -c . | docker import - "$2"`, "import", join(folder, "root"), image]);
  return image;
};

/** Builds an image from files and a Dockerfile. */
const build = async (settings: Settings, image: string, files: Record<string, string>, dockerfile: string) => {
  const context = await mkdtemp(join(tmpdir(), "herald-image-"));
  try {
    settings.progress(`building ${image}`);
    for (const [name, source] of Object.entries(files)) {
      await mkdir(dirname(join(context, name)), { recursive: true });
      // Link within the same file system, because some of these trees are large.
      await link(source, join(context, name)).catch(() =>
        cp(source, join(context, name), { recursive: true, verbatimSymlinks: true }),
      );
    }
    await writeFile(join(context, "Dockerfile"), dockerfile);
    await must(settings, "docker", ["build", "--quiet", "--tag", image, context]);
  } finally {
    await rm(context, { recursive: true, force: true });
  }
};

const authoritiesInImage = "NODE_EXTRA_CA_CERTS=/etc/ssl/certs/ca-certificates.crt";

/** Builds an image with the Node of `npm start` and the npm that runs this command. */
const buildNode = async (settings: Settings, debian: string, image: string) => {
  const npm = process.env.npm_execpath;
  if (npm === undefined) throw new Error("run this by npm: npm run test:compose");
  await build(
    settings,
    image,
    { node: process.execPath, npm: dirname(dirname(npm)) },
    `FROM ${debian}
RUN groupadd --gid 1000 node && useradd --uid 1000 --gid node --create-home node
COPY node /usr/local/bin/node
COPY npm /usr/local/lib/node_modules/npm
RUN ln -s ../lib/node_modules/npm/bin/npm-cli.js /usr/local/bin/npm && ln -s ../lib/node_modules/npm/bin/npx-cli.js /usr/local/bin/npx
ENV ${authoritiesInImage}
CMD ["node"]
`,
  );
};

const buildNats = async (settings: Settings, debian: string, image: string) => {
  // Compiled, because Debian's needs the libraries and the loader of a newer Debian beside it; and in the version of the image's tag.
  const name = `static-nats-server-${versions.nats}`;
  const folder = await goProgram(name, natsModule, { env: settings.engine.env, progress: settings.progress });
  await build(
    settings,
    image,
    { "nats-server": join(folder, "nats-server") },
    `FROM ${debian}
RUN apt-get update && apt-get install --yes --no-install-recommends wget && rm -rf /var/lib/apt/lists
COPY nats-server /usr/local/bin/nats-server
ENTRYPOINT ["nats-server"]
`,
  );
};

/** Builds Caddy of Debian. */
const buildCaddy = (settings: Settings, debian: string, image: string) =>
  build(
    settings,
    image,
    {},
    `FROM ${debian}
RUN apt-get update && apt-get install --yes --no-install-recommends caddy && rm -rf /var/lib/apt/lists
ENTRYPOINT []
`,
  );

/** Builds FerretDB with DocumentDB under the name of MongoDB's image, because the real image cannot be built here. */
const buildMongo = async (settings: Settings, node: string, image: string) => {
  const { choice } = await resolveMongo({ env: { ...process.env, HERALD_MONGO_URL: "" }, progress: settings.progress });
  if (choice?.kind !== "ferretdb")
    throw new Error("the stand-in for MongoDB is made of FerretDB, which is not used here");
  const { ferretdb, postgres, template } = choice.programs;
  const root = postgres.slice(0, postgres.indexOf("/usr/lib/postgresql"));
  const manifest = join(import.meta.dirname, "../../package.json");
  const { dependencies } = JSON.parse(await readFile(manifest, "utf8")) as { dependencies: Record<string, string> };
  await build(
    settings,
    image,
    {
      "documentdb/root": root,
      "documentdb/template": template,
      ferretdb,
      "stand-in/mongod.ts": join(import.meta.dirname, "mongo-stand-in/mongod.ts"),
      "stand-in/mongosh.ts": join(import.meta.dirname, "mongo-stand-in/mongosh.ts"),
    },
    `FROM ${node}
RUN groupadd --gid 999 mongodb && useradd --uid 999 --gid mongodb --create-home mongodb && mkdir -p /data/db && chown mongodb:mongodb /data/db
WORKDIR /opt/stand-in
RUN echo '{ "type": "module" }' > package.json && npm install --no-audit --no-fund pg@${dependencies.pg} mongodb@${dependencies.mongodb}
COPY --chown=999:999 documentdb /opt/documentdb
COPY ferretdb /opt/ferretdb
COPY stand-in ./
RUN printf '#!/bin/sh\\nexec node --disable-warning=ExperimentalWarning /opt/stand-in/mongosh.ts "$@"\\n' > /usr/local/bin/mongosh && chmod 755 /usr/local/bin/mongosh
USER mongodb
ENTRYPOINT ["node", "--disable-warning=ExperimentalWarning", "/opt/stand-in/mongod.ts"]
`,
  );
};

const buildFerretdb = async (settings: Settings, debian: string, image: string) => {
  const { choice } = await resolveMongo({ env: { ...process.env, HERALD_MONGO_URL: "" }, progress: settings.progress });
  if (choice?.kind !== "ferretdb") throw new Error("FerretDB is not used here, so no image can be made of it");
  const dockerfile = `FROM ${debian}\nCOPY ferretdb /ferretdb\nENTRYPOINT ["/ferretdb"]\n`;
  await build(settings, image, { ferretdb: choice.programs.ferretdb }, dockerfile);
};

/** Builds the images that docker-compose.yml and the Dockerfile name, for machines without access to a registry. */
export const makeBaseImages = async (settings: Settings, images: BaseImages): Promise<void> => {
  const [bookworm, forky] = suites;
  const debian = await importDebian(settings, bookworm, "herald-test/debian");
  await importDebian(settings, forky, images.debian);
  await buildNode(settings, debian, images.node);
  await buildNats(settings, debian, images.nats);
  await buildCaddy(settings, debian, images.caddy);
  await buildMongo(settings, images.node, images.mongo);
  await buildFerretdb(settings, debian, images.ferretdb);
};
