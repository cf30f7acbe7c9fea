import { readFile, writeFile } from "node:fs/promises";
import { cpus, totalmem } from "node:os";
import { join } from "node:path";

const file = join(import.meta.dirname, "../../docs/reliability.md");

/** Where the part of `test:hostile` begins; what is above it is `test:faults`'. */
const border = "\n## Hostile input\n";

export type ReliabilityPage = {
  /** All above the border. */
  readonly faults: string;
  /** From its heading on; empty while nobody has written it. */
  readonly hostile: string;
};

/** docs/reliability.md, which two commands write: each replaces its own part and keeps the other's. */
export async function readReliability(): Promise<ReliabilityPage> {
  const text = await readFile(file, "utf8");
  const at = text.indexOf(border);
  return at === -1 ? { faults: text, hostile: "" } : { faults: text.slice(0, at), hostile: text.slice(at + 1) };
}

export async function writeReliability(part: Partial<ReliabilityPage>): Promise<void> {
  const { faults, hostile } = { ...(await readReliability()), ...part };
  const parts = [faults, hostile].filter((text) => text !== "").map((text) => `${text.trimEnd()}\n`);
  await writeFile(file, parts.join("\n"));
}

/** What figures were measured on. */
export const machine = (): string =>
  `${cpus().length} cores (${cpus()[0]?.model.trim() ?? "unknown"}), ${Math.round(totalmem() / 2 ** 30)} GB, ${process.platform}`;
