import { copyFile } from "node:fs/promises";
import { join } from "node:path";
import { must } from "./must.ts";

/** Maven ends before optimised code would pay off: half the CPU time. */
export const mavenOptions = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC";

/** Why the library for Android cannot be built here; undefined if it can. */
export const whyNoMaven = async (root: string): Promise<string | undefined> => {
  try {
    await must("mvn", ["--version"], { cwd: root });
  } catch (error) {
    return (error as Error).message.split("\n").at(-1);
  }
};

/**
 * Builds the library for Android, and writes the Maven repository that consists of it into `files`. Returns the path of the AAR, below
 * `target`. `repository` is this repository's address on the web.
 */
export const buildAndroid = async (
  root: string,
  {
    files,
    target,
    version,
    repository,
  }: { files: string; target: string; version: string; repository?: string | undefined },
): Promise<string> => {
  const options = [
    "--batch-mode",
    "--no-transfer-progress",
    `-Dkit.target=${target}`,
    "-Dmaven.test.skip=true",
    // Archives have local times.
    "-Duser.timezone=UTC",
    ...(repository ? [`-Drepository=${repository}`] : []),
  ];
  const maven = [
    `MAVEN_OPTS=${mavenOptions}`,
    "mvn",
    ...options,
    "--file",
    join(root, "kits/android/pom.xml"),
    "package",
  ];
  await must("env", maven, { cwd: root });
  const name = `herald-android-${version}`;
  await copyFile(join(target, `${name}-maven.zip`), join(files, `${name}-maven.zip`));
  return join(target, `${name}.aar`);
};
