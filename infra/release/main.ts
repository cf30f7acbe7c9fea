import { createHash } from "node:crypto";
import { copyFile, cp, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { buildAndroid, whyNoMaven } from "./android.ts";
import { writeArchive } from "./archive.ts";
import { writeChart } from "./chart.ts";
import { problemsOf, versionOf } from "./check.ts";
import { buildImages, unbuiltImages, whyNoEngine } from "./images.ts";
import { type MissingTools, problemsOfOptions, type ReleaseOptions, readOptions, sumsFile, usage } from "./options.ts";
import { buildPackage, packageNames, packPackage } from "./package.ts";

/** `npm run release`: builds all that a version consists of. Exits with 1 and a sentence for each problem, before it builds anything. */

const root = join(import.meta.dirname, "../..");
const say = (line: string) => void process.stdout.write(`${line}\n`);

/** Builds everything into `files`. `temporary` is a folder for what is packed. */
const assemble = async (
  { registry, push, layouts, platforms, repository }: ReleaseOptions,
  files: string,
  temporary: string,
  missing: MissingTools,
): Promise<void> => {
  const version = versionOf(root);
  let aar: string | undefined;
  if (missing.maven === undefined) {
    say("library for Android");
    aar = await buildAndroid(root, { files, target: join(temporary, "android"), version, repository });
  } else
    say(
      `SKIPPED: the library for Android, because \`mvn --version\` says: ${missing.maven}. @herald/react-native is without it, for iOS alone.`,
    );
  for (const name of packageNames) {
    say(`package @herald/${name}`);
    await buildPackage(root, name, join(temporary, name), { repository, aar });
    await packPackage(join(temporary, name), files);
  }
  for (const name of ["openapi", "asyncapi"])
    await copyFile(join(root, `docs/reference/${name}.json`), join(files, `herald-${version}.${name}.json`));
  if (missing.engine !== undefined) say(`SKIPPED: images, because \`docker version\` says: ${missing.engine}`);
  const images =
    missing.engine === undefined
      ? await buildImages({ root, registry, version, push, layouts, platforms, progress: say })
      : unbuiltImages(registry, version);
  if (!push && layouts === undefined)
    say("The archive and the chart name the images by tag: digests come with --push or --layouts.");
  await writeFile(join(files, "images.json"), `${JSON.stringify(images, null, 2)}\n`);
  say("archive for compose");
  await writeArchive(root, files, version, images, repository);
  say("chart, and what belongs beside it");
  await writeChart(root, files, version, registry, images);
  for (const name of ["evaluation", "nats-values"])
    await copyFile(join(root, `infra/helm/${name}.yaml`), join(files, `herald-${version}.${name}.yaml`));
};

/** Writes the checksums, and says what was built. */
const summarise = async (files: string): Promise<void> => {
  const sums: string[] = [];
  for (const file of (await readdir(files)).toSorted()) {
    const content = await readFile(join(files, file));
    sums.push(`${createHash("sha256").update(content).digest("hex")}  ${file}`);
    say(`  ${file}, ${Math.ceil(content.length / 1_024)} KiB`);
  }
  await writeFile(join(files, sumsFile), `${sums.join("\n")}\n`);
};

const release = async (): Promise<void> => {
  const options = readOptions(process.argv.slice(2));
  if (options.help) return say(usage);
  const missing: MissingTools = { engine: await whyNoEngine(root), maven: await whyNoMaven(root) };
  const problems = [...problemsOfOptions(options, missing), ...(await problemsOf(root, options.draft))];
  if (problems.length > 0) throw new Error(problems.join("\n"));

  const temporary = await mkdtemp(join(tmpdir(), "herald-release-"));
  try {
    const files = join(temporary, "files");
    await mkdir(files);
    await assemble(options, files, temporary, missing);
    await summarise(files);
    // Complete or not at all: a failure leaves an earlier release where it is.
    await rm(options.out, { recursive: true, force: true });
    await cp(files, options.out, { recursive: true });
    say(`Herald ${versionOf(root)} is in ${options.out}.`);
  } finally {
    await rm(temporary, { recursive: true, force: true });
  }
};

await release().catch((error: Error) => {
  process.stderr.write(`${error.message}\n`);
  if ("code" in error && String(error.code).startsWith("ERR_PARSE_ARGS")) process.stderr.write(`\n${usage}\n`);
  process.exitCode = 1;
});
