import { readFile, writeFile } from "node:fs/promises";
import { cpus, totalmem } from "node:os";
import { join } from "node:path";

const file = join(import.meta.dirname, "../../docs/reliability.md");

/** Where the parts begin that `test:hostile` writes, and that a person does; what is above both is `test:faults`'. */
const headings = { hostile: "\n## Hostile input\n", costs: "\n## What attacks cost\n" } as const;

export type ReliabilityPage = {
  /** All above the first heading. */
  readonly faults: string;
  /** From its heading on; empty where there is none. */
  readonly hostile: string;
  readonly costs: string;
};

/** docs/reliability.md, which two commands and people write: each replaces its own part and keeps the others'. */
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

/** What figures were measured on. */
export const machine = (): string =>
  `${cpus().length} cores (${cpus()[0]?.model.trim() ?? "unknown"}), ${Math.round(totalmem() / 2 ** 30)} GB, ${process.platform}`;
