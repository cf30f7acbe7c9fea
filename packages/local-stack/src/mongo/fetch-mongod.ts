import { join } from "node:path";
import { DryMongoBinary, MongoBinary } from "mongodb-memory-server-core";
import { MongoBinaryDownloadUrl } from "mongodb-memory-server-core/lib/util/MongoBinaryDownloadUrl.js";
import { binaryVersion } from "../processes/find-binary.ts";
import { versions } from "../versions.ts";

/** A firewall that swallows packets must cost seconds, not minutes. */
const siteAnswersWithinMs = 4_000;

const folderIn = (cache: string) => join(cache, `mongod-${versions.mongo}`);

/** What an earlier run downloaded. */
export async function cachedMongod(cache: string): Promise<string | undefined> {
  const options = await DryMongoBinary.generateOptions({ version: versions.mongo, downloadDir: folderIn(cache) });
  return DryMongoBinary.locateBinary(options).catch(() => undefined);
}

/** A real mongod from its maker's site, which verifies its checksum. Throws with the reason, soon when out of reach. */
export async function fetchMongod(cache: string, progress: (line: string) => void): Promise<string> {
  const { os, arch } = await DryMongoBinary.generateOptions({ version: versions.mongo });
  const source = new MongoBinaryDownloadUrl({ version: versions.mongo, platform: process.platform, arch, os });
  const url = new URL(await source.getDownloadUrl());
  const answer = await fetch(url, { method: "HEAD", signal: AbortSignal.timeout(siteAnswersWithinMs) }).catch(
    (error: Error) => error,
  );
  if (answer instanceof Error) throw new Error(`${url.host} is out of reach`);
  if (!answer.ok) throw new Error(`${url.host} has no mongod ${versions.mongo} for this system (${answer.status})`);
  progress(`mongod ${versions.mongo}: downloading from ${url.host}, this once`);
  const binary = await MongoBinary.getPath({ version: versions.mongo, downloadDir: folderIn(cache) });
  // An older C library, or a processor without AVX, shows only when the program runs.
  if (!(await binaryVersion(binary)))
    throw new Error(`mongod ${versions.mongo} was downloaded but does not run on this machine`);
  return binary;
}
