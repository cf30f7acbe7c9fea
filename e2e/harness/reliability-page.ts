import { readFile, writeFile } from "node:fs/promises";
import { cpus, totalmem } from "node:os";
import { join } from "node:path";

const file = join(import.meta.dirname, "../../docs/reliability.md");

/** The headings of the parts that `test:hostile` and people write. `test:faults` writes the part above them. */
const headings = { hostile: "\n## Hostile input\n", costs: "\n## What attacks cost\n" } as const;

export type ReliabilityPage = {
  /** The text above the first heading. */
  readonly faults: string;
  /** The text from its heading on; empty without this heading. */
  readonly hostile: string;
  readonly costs: string;
};

/** Reads docs/reliability.md in parts. Two commands and people write it, and each command replaces only its own part. */
export async function readReliability(): Promise<ReliabilityPage> {
  const [rest = "", costs] = (await readFile(file, "utf8")).split(headings.costs);
  const [faults = "", hostile] = rest.split(headings.hostile);
  const part = (heading: string, text: string | undefined) =>
    text === undefined ? "" : `${heading.trimStart()}${text}`;
  return { faults, hostile: part(headings.hostile, hostile), costs: part(headings.costs, costs) };
}

export async function writeReliability(part: Partial<ReliabilityPage>): Promise<void> {
  const { faults, hostile, costs } = { ...(await readReliability()), ...part };
  const parts = [faults, hostile, costs].filter((text) => text !== "").map((text) => `${text.trimEnd()}\n`);
  await writeFile(file, parts.join("\n"));
}

/** The machine of the measurement. */
export const machine = (): string =>
  `${cpus().length} cores (${cpus()[0]?.model.trim() ?? "unknown"}), ${Math.round(totalmem() / 2 ** 30)} GB, ${process.platform}`;
