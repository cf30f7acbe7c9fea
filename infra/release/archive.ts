import { cp, mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import type { ImageReferences } from "./images.ts";
import { must } from "./must.ts";

/** The compose file of a release: that of the tree, with images in place of instructions to build them. */
export const releasedCompose = (text: string, images: ImageReferences): string => {
  const [, ...body] = text.split(/^(?=name: herald$)/m);
  if (body.length !== 1) throw new Error('docker-compose.yml does not begin with a comment and "name: herald"');
  const named = body
    .join("")
    .replaceAll(/^ +(?:build|pull_policy): .*\n/gm, "")
    .replaceAll(
      /localhost\/herald\/([a-z]+):\$\{HERALD_VERSION:-[^}]+\}/g,
      (_, name: keyof ImageReferences) => images[name],
    );
  const left = /^.*(?:localhost\/|undefined|\bbuild\b:|\*build).*$/m.exec(named)?.[0];
  if (left !== undefined) throw new Error(`docker-compose.yml has a line that no release can have: ${left.trim()}`);
  return `# Herald on one host: README.md beside this file.\n${named}`;
};

/** The files that a compose file mounts into its containers. */
const mountedFiles = (compose: string): string[] => [
  ...new Set([...compose.matchAll(/\.\/(infra\/[^:\s]+):/g)].map(([, file = ""]) => file)),
];

const readme = (version: string, repository: string | undefined): string => `# Herald ${version}

Push notifications from your own servers, on one host. You need Docker with Compose 2.24.4 or later, and openssl.

    infra/init --simulators
    docker compose up -d --wait
    docker compose run --rm demo

The last command prints the four commands of a first push. It goes to simulators of the push services. For Apple's, Google's and the
browsers' own ones leave \`--simulators\` out: \`infra/init\` then prints how to create your first project.

- \`.env\` has the settings and the secrets. Keep a copy of it in a safe place.
- \`infra/consumers.conf\` has the users of NATS that you add.
- To upgrade, unpack the newer archive, copy \`.env\` and \`infra/consumers.conf\` into it, and there run \`infra/init\` and
  \`docker compose up -d --wait\`. The data is in volumes that every version finds by the name \`herald\`.
${repository === undefined ? "" : `- The documentation: ${repository}/tree/v${version}/docs\n`}`;

/** Writes `herald-compose-<version>.tar.gz` into `out`, and returns its path. */
export const writeArchive = async (
  root: string,
  out: string,
  version: string,
  images: ImageReferences,
  repository: string | undefined,
): Promise<string> => {
  const parent = await mkdtemp(join(tmpdir(), "herald-archive-"));
  const folder = join(parent, `herald-compose-${version}`);
  try {
    const compose = releasedCompose(await readFile(join(root, "docker-compose.yml"), "utf8"), images);
    await mkdir(folder);
    await writeFile(join(folder, "compose.yaml"), compose);
    await writeFile(join(folder, "README.md"), readme(version, repository));
    const files = ["LICENSE", "infra/init", "infra/backup", "infra/restore", "infra/parts", "infra/postgresql"];
    for (const file of [...files, ...mountedFiles(compose)])
      await cp(join(root, file), join(folder, file), { recursive: true });
    const archive = join(out, `${basename(folder)}.tar.gz`);
    await must("tar", ["-czf", archive, "-C", parent, basename(folder)], { cwd: root });
    return archive;
  } finally {
    await rm(parent, { recursive: true, force: true });
  }
};
