import { readFile, writeFile } from "node:fs/promises";
import { cpus, totalmem } from "node:os";
import { join } from "node:path";

const file = join(import.meta.dirname, "../../docs/reference/reliability.md");

/** The heading of the part that `test:hostile` writes. `test:faults` writes the part above it. */
const heading = "\n## Attacks\n";

export type ReliabilityPage = {
  /** The text above the attacks. */
  readonly faults: string;
  /** The text from its heading on; empty without this heading. */
  readonly hostile: string;
};

/** Reads the page in parts. Two commands write it, and each replaces only its own part. */
export async function readReliability(): Promise<ReliabilityPage> {
  const [faults = "", hostile] = (await readFile(file, "utf8")).split(heading);
  return { faults, hostile: hostile === undefined ? "" : `${heading.trimStart()}${hostile}` };
}

export async function writeReliability(part: Partial<ReliabilityPage>): Promise<void> {
  const { faults, hostile } = { ...(await readReliability()), ...part };
  const parts = [faults, hostile].filter((text) => text !== "").map((text) => `${text.trimEnd()}\n`);
  await writeFile(file, parts.join("\n"));
}

/** The machine of the measurement. */
export const machine = (): string =>
  `${cpus().length} cores (${cpus()[0]?.model.trim() ?? "unknown"}), ${Math.round(totalmem() / 2 ** 30)} GB, ${process.platform}`;
