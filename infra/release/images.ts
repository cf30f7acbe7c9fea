import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { must } from "./must.ts";

/** One image for each program that `infra/Dockerfile` builds, and one of all of them with the broker and the database. */
export const imageNames = ["bus", "gateway", "registry", "dispatch", "analytics", "simulators", "herald-all"] as const;
type ImageName = (typeof imageNames)[number];

/** The reference of each image: with its digest if it was pushed or written as a layout, else with its tag alone. */
export type ImageReferences = Readonly<Record<ImageName, string>>;

export type ImageOptions = {
  readonly root: string;
  /** Host and path, such as `ghcr.io/owner/herald`. */
  readonly registry: string;
  readonly version: string;
  readonly push: boolean;
  /** A folder for an OCI layout of each image. Needs buildx. */
  readonly layouts: string | undefined;
  /** For several processors, such as `linux/amd64,linux/arm64`. Default: that of the engine. */
  readonly platforms: string | undefined;
  readonly progress: (line: string) => void;
};

/** Why no image can be built here; undefined if one can. */
export const whyNoEngine = (root: string): Promise<string | undefined> =>
  must("docker", ["version"], { cwd: root }).then(
    () => undefined,
    (error: Error) => error.message.trim().split("\n").at(-1),
  );

/** Builds an OCI layout for all processors, with what the image is made of and how it was built. Returns the digest. */
const buildLayout = async (
  root: string,
  args: readonly string[],
  { layout, platforms }: { readonly layout: string; readonly platforms: string | undefined },
): Promise<string> => {
  const folder = await mkdtemp(join(tmpdir(), "herald-image-"));
  try {
    const metadata = join(folder, "metadata.json");
    const attested = ["--sbom=true", "--provenance=mode=max", "--metadata-file", metadata];
    const output = ["--output", `type=oci,tar=false,dest=${layout}`];
    const processors = platforms === undefined ? [] : ["--platform", platforms];
    await must("docker", ["buildx", "build", ...output, ...processors, ...attested, ...args], { cwd: root });
    return JSON.parse(await readFile(metadata, "utf8"))["containerimage.digest"];
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
};

/** Pushes a built image and returns its digest. */
const push = async (root: string, tag: string): Promise<string> => {
  await must("docker", ["push", "--quiet", tag], { cwd: root });
  const format = "{{range .RepoDigests}}{{println .}}{{end}}";
  const digests = (await must("docker", ["image", "inspect", "--format", format, tag], { cwd: root })).split("\n");
  const repository = tag.slice(0, tag.lastIndexOf(":"));
  const own = digests.find((digest) => digest.startsWith(`${repository}@`));
  if (own === undefined) throw new Error(`${tag} was pushed, but the engine knows no digest of it`);
  return own.slice(repository.length + 1);
};

/** Builds all images, pushes them if asked to, and returns their references. Throws the engine's output. */
export const buildImages = async (options: ImageOptions): Promise<ImageReferences> => {
  const { root, registry, version, layouts, platforms, progress } = options;
  const revision = (await must("git", ["rev-parse", "HEAD"], { cwd: root })).trim();
  const references: Partial<Record<ImageName, string>> = {};
  for (const name of imageNames) {
    const tag = `${registry}/${name}:${version}`;
    progress(`image ${tag}`);
    const values = { SERVICE: name, VERSION: version, REVISION: revision };
    const build = Object.entries(values).flatMap(([key, value]) => ["--build-arg", `${key}=${value}`]);
    const target = name === "herald-all" ? ["--target", "all"] : [];
    const args = ["--file", "infra/Dockerfile", ...target, ...build, "--tag", tag, "."];
    let digest: string | undefined;
    if (layouts !== undefined) digest = await buildLayout(root, args, { layout: join(layouts, name), platforms });
    else {
      await must("docker", ["build", "--quiet", ...args], { cwd: root });
      if (options.push) digest = await push(root, tag);
    }
    references[name] = digest === undefined ? tag : `${tag}@${digest}`;
  }
  return references as ImageReferences;
};

/** The references of images that were not built. */
export const unbuiltImages = (registry: string, version: string): ImageReferences =>
  Object.fromEntries(imageNames.map((name) => [name, `${registry}/${name}:${version}`])) as ImageReferences;
