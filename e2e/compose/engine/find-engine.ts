import { execFile } from "node:child_process";
import { cp, readFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { images } from "@herald/provision";
import { must } from "../../../infra/release/must.ts";
import { makeBaseImages } from "./base-images.ts";
import { startLocalEngine } from "./local-engine.ts";

const root = join(import.meta.dirname, "../../..");
const run = promisify(execFile);
const say = (line: string) => void process.stdout.write(`${line}\n`);

/** `local`: made here, with base images that have no digest. */
export type Engine = { env: NodeJS.ProcessEnv; local: boolean; stop: () => Promise<void> };

/** Without its digest: an image that is made here has another one. */
export const withoutDigests = (text: string) => text.replaceAll(/@sha256:[0-9a-f]{64}/g, "");

/** The files that name images of others. */
export const builtFrom = [
  "docker-compose.yml",
  "infra/Dockerfile",
  "infra/postgresql/compose.yaml",
  "infra/postgresql/Dockerfile",
];

const imageIn = async (file: string, pattern: RegExp): Promise<string> => {
  const [, image] = pattern.exec(await readFile(join(root, file), "utf8")) ?? [];
  return withoutDigests(String(image));
};
const imagesOfOthers = async () => ({
  ...images,
  caddy: await imageIn("docker-compose.yml", /^ +image: &caddy (caddy:\S+)/m),
  node: await imageIn("infra/Dockerfile", /^FROM (?:--\S+ )?(node:\S+)/m),
  debian: await imageIn("infra/postgresql/Dockerfile", /^FROM (debian:\S+)/m),
  ferretdb: await imageIn("infra/postgresql/compose.yaml", /^ +image: (\S+\/ferretdb:\S+)/m),
});

/** The engine of HERALD_COMPOSE_ENGINE, or the running one. Says that the test is skipped without one, unless it is required. */
export const findEngine = async (): Promise<Engine | undefined> => {
  if (process.env.HERALD_COMPOSE_ENGINE === "local") {
    const engine = await startLocalEngine({ env: process.env, progress: say });
    try {
      await makeBaseImages({ engine, progress: say }, await imagesOfOthers());
    } catch (error) {
      await engine.stop();
      throw error;
    }
    say("MongoDB is played by FerretDB with DocumentDB here");
    return { env: engine.env, local: true, stop: engine.stop };
  }
  const env = process.env;
  for (const asked of [["version"], ["compose", "version"]]) {
    const why = await run("docker", asked, { env, timeout: 10_000 }).then(
      () => undefined,
      (error: Error) => error.message.trim().split("\n").at(-1),
    );
    if (why === undefined) continue;
    if (process.env.HERALD_COMPOSE_ENGINE === "required") throw new Error(`\`docker ${asked.join(" ")}\` says: ${why}`);
    say(`SKIPPED: nothing was built or run, because \`docker ${asked.join(" ")}\` says: ${why}`);
    say(
      `HERALD_COMPOSE_ENGINE=local npm run ${process.env.npm_lifecycle_event} sets up an engine of its own, as root on Debian.`,
    );
    return undefined;
  }
  return { env, local: false, stop: async () => {} };
};

/** Copies the tree as a clone would have it, with uncommitted changes. */
export const copyTree = async (tree: string): Promise<void> => {
  const here = { cwd: root, env: process.env };
  const listed = await must("git", ["ls-files", "-z", "--cached", "--others", "--exclude-standard"], here);
  for (const file of new Set(listed.split("\0").filter(Boolean)))
    await cp(join(root, file), join(tree, file)).catch((error: NodeJS.ErrnoException) => {
      // The file is deleted, but the deletion is not committed yet.
      if (error.code !== "ENOENT") throw error;
    });
};
