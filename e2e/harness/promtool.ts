import { join } from "node:path";
import { cacheFolder, findBinary, provision, unpackDebianPackages, whyNoDebian } from "@herald/provision";

/** The number is the version of this recipe. */
const folderName = "promtool-debian-1";

/**
 * Finds promtool, Prometheus' checker: on PATH, else in Debian's package, unpacked once into the user's cache. Throws an error that names the
 * remedy.
 */
export async function findPromtool(env: NodeJS.ProcessEnv): Promise<string> {
  const onPath = await findBinary("promtool", env.PATH);
  if (onPath) return onPath;
  const remedy = "install it (Debian: apt-get install prometheus)";
  const whyNot = await whyNoDebian(env);
  if (whyNot) throw new Error(`There is no promtool on PATH, and ${whyNot}: ${remedy}`);
  const progress = (line: string) => void process.stderr.write(`promtool: ${line}\n`);
  const folder = await provision({ cache: cacheFolder(env), name: folderName, progress }, async (building) => {
    // What Prometheus' page needs is left out, and Prometheus.
    const leaveOut = ["./usr/share/*", "./usr/bin/prometheus"];
    await unpackDebianPackages(building, ["prometheus"], { env, progress, ownSuite: true, leaveOut });
  }).catch((error: Error) => {
    throw new Error(`There is no promtool on PATH, and it could not be fetched (${error.message}): ${remedy}`);
  });
  return join(folder, "root/usr/bin/promtool");
}
