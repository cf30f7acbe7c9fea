import { copyFile, rename } from "node:fs/promises";
import { join } from "node:path";
import { unpackDebianPackages, whyNoDebian } from "../provision/debian.ts";
import { libraryFolder, librarySubfolders, wrapProgram } from "../provision/debian-wrapper.ts";
import { goInstall } from "../provision/go-install.ts";
import { exists, provision } from "../provision/provision.ts";
import { makeTemplate } from "./postgres-template.ts";

const ferretdbVersion = "2.7.0";
const goModule = `github.com/FerretDB/FerretDB/v2/cmd/ferretdb@v${ferretdbVersion}`;
const ferretdbFolder = `ferretdb-${ferretdbVersion}`;
/** The last number is this recipe's: it rises when what is made of the packages changes. */
const postgresFolder = "postgresql-18-documentdb-1";
const postgresLib = "usr/lib/postgresql/18";

/** FerretDB, the PostgreSQL with DocumentDB below it, and an initialised data folder to copy. */
export type FerretPrograms = { ferretdb: string; postgres: string; template: string };

type FetchOptions = { cache: string; env: NodeJS.ProcessEnv; progress: (line: string) => void };

const programsIn = (cache: string): FerretPrograms => ({
  ferretdb: join(cache, ferretdbFolder, "ferretdb"),
  postgres: join(cache, postgresFolder, "root", postgresLib, "bin/postgres"),
  template: join(cache, postgresFolder, "template"),
});

/** What an earlier run fetched. */
export async function cachedFerret(cache: string): Promise<FerretPrograms | undefined> {
  const programs = programsIn(cache);
  return (await exists(programs.ferretdb)) && (await exists(programs.template)) ? programs : undefined;
}

/** Fetches both halves at once: one mostly compiles, the other mostly downloads. Throws with the reason. */
export async function fetchFerret(options: FetchOptions): Promise<FerretPrograms> {
  const missing = await whyNoDebian(options.env);
  if (missing) throw new Error(`PostgreSQL with DocumentDB comes from Debian packages, but ${missing}`);
  const results = await Promise.allSettled([fetchFerretdb(options), fetchPostgres(options)]);
  const reasons = results.flatMap((result) => (result.status === "rejected" ? [(result.reason as Error).message] : []));
  if (reasons.length > 0) throw new Error(reasons.join("; "));
  return programsIn(options.cache);
}

function fetchFerretdb({ cache, env, progress }: FetchOptions): Promise<string> {
  return provision({ cache, name: ferretdbFolder, progress }, async (building) => {
    progress(`FerretDB ${ferretdbVersion}: go install, about a minute, this once`);
    const { ok, why } = await goInstall(goModule, building, env);
    if (!ok) throw new Error(why);
  });
}

function fetchPostgres({ cache, env, progress }: FetchOptions): Promise<string> {
  return provision({ cache, name: postgresFolder, progress }, async (building) => {
    const say = (line: string) => progress(`PostgreSQL 18 with DocumentDB: ${line}`);
    say("about 140 MB, half a minute, this once");
    const root = await unpackDebianPackages(building, ["postgresql-18-documentdb"], { env, progress: say });
    const libraries = [
      libraryFolder(),
      join(postgresLib, "lib"),
      ...(await librarySubfolders(root, ["blas", "lapack"])),
    ];
    // initdb looks for postgres beside itself, so wrapping the two is enough.
    for (const program of ["postgres", "initdb"]) await wrapProgram(root, join(postgresLib, "bin", program), libraries);
    const extensions = join(root, "usr/share/postgresql/18/extension");
    await copyFile(join(extensions, "postgis-3.control"), join(extensions, "postgis.control")); // a package script's task
    say("creating a data folder with the extension");
    const template = join(building, "template.new");
    await makeTemplate({ bin: join(root, postgresLib, "bin"), folder: template, env });
    await rename(template, join(building, "template"));
  });
}
