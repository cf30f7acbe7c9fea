import { cp, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { ImageReferences } from "./images.ts";
import { must } from "./must.ts";

/** The images that a cluster runs. */
const parts = ["bus", "gateway", "registry", "dispatch", "analytics"] as const;

/** The chart's values with the repository and the digests of the release's images. */
export const releasedValues = (text: string, registry: string, images: ImageReferences): string => {
  let values = text;
  const replace = (pattern: RegExp, by: string) => {
    if (!pattern.test(values)) throw new Error(`infra/helm/herald/values.yaml has no line ${pattern.source}`);
    values = values.replace(pattern, by);
  };
  replace(/^ {2}repository: your-registry\.invalid\/herald$/m, `  repository: ${registry}`);
  for (const name of parts) {
    const [, digest = ""] = images[name].split("@");
    replace(new RegExp(`^ {2}${name}: \\{ digest: "" \\}$`, "m"), `  ${name}: { digest: "${digest}" }`);
  }
  return values;
};

/** Writes the chart's archive, `herald-<version>.tgz`, as `helm package` names it, into `out`, and returns its path. */
export const writeChart = async (
  root: string,
  out: string,
  version: string,
  registry: string,
  images: ImageReferences,
): Promise<string> => {
  const parent = await mkdtemp(join(tmpdir(), "herald-chart-"));
  try {
    const folder = join(parent, "herald");
    await cp(join(root, "infra/helm/herald"), folder, { recursive: true });
    const values = join(folder, "values.yaml");
    await writeFile(values, releasedValues(await readFile(values, "utf8"), registry, images));
    const archive = join(out, `herald-${version}.tgz`);
    await must("tar", ["-czf", archive, "-C", parent, "herald"], { cwd: root });
    return archive;
  } finally {
    await rm(parent, { recursive: true, force: true });
  }
};
