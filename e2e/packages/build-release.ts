import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { removeAtExit } from "@herald/provision";
import type { TestProject } from "vitest/node";
import { must } from "../../infra/release/must.ts";

declare module "vitest" {
  export interface ProvidedContext {
    /** The folder of a release that was built from this tree. */
    heraldRelease: string;
  }
}

export const registry = "registry.example.com/herald";
export const repository = "https://git.example.com/herald/herald";

/** Builds a release once for all files. Images are not part of it: `npm run test:compose` builds those. */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const folder = await mkdtemp(join(tmpdir(), "herald-release-"));
  removeAtExit(folder);
  const root = join(import.meta.dirname, "../..");
  const main = ["--conditions=@herald/source", join(root, "infra/release/main.ts")];
  const options = ["--draft", "--registry", registry, "--repository", repository, "--out", folder];
  // No engine may be found: one would build images for minutes.
  await must(process.execPath, [...main, ...options], {
    cwd: root,
    env: { ...process.env, DOCKER_HOST: "unix:///nonexistent" },
  });
  project.provide("heraldRelease", folder);
  return () => rm(folder, { recursive: true, force: true });
}
