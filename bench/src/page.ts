import { cpus, totalmem } from "node:os";
import { spread, type Table } from "./row.ts";

const section = ({ title, lines }: Table): string =>
  [
    `## ${title[0]?.toUpperCase()}${title.slice(1)}`,
    "",
    "| | minimum | median | maximum |",
    "| --- | ---: | ---: | ---: |",
    ...lines.map(
      ({ label, values, digits }) => `| ${[label.trim().replace(/ +/g, " "), ...spread(values, digits)].join(" | ")} |`,
    ),
  ].join("\n");

const medianOf = ({ lines }: Table, label: string): number =>
  Number(spread(lines.find((line) => line.label === label)?.values ?? [0])[1]);

/** The CPU of one push, Herald's beside the floor's, of each table that has both. */
const plot = (tables: readonly Table[]): string => {
  const labels = { own: "CPU of Herald, µs a push", floor: "floor alone, µs a push" };
  const both = tables.filter(({ lines }) => lines.some(({ label }) => label === labels.floor));
  if (both.length === 0) return "";
  const values = (label: string) => both.map((table) => medianOf(table, label)).join(", ");
  return `
\`\`\`mermaid
xychart-beta
  title "CPU of a push in µs: bars Herald, line the floor alone"
  x-axis [${both.map(({ short, title }) => JSON.stringify(short ?? title)).join(", ")}]
  y-axis "µs"
  bar [${values(labels.own)}]
  line [${values(labels.floor)}]
\`\`\`
`;
};

/** docs/performance.md. */
export const page = (tables: readonly Table[], runs: number, args: readonly string[], at: Date): string => {
  const command = ["npm run bench", ...(args.length > 0 ? ["--", ...args] : [])].join(" ");
  const machine = `${cpus().length} cores (${cpus()[0]?.model.trim() ?? "unknown"}), ${Math.round(totalmem() / 2 ** 30)} GB, ${process.platform}, Node ${process.version}`;
  return `# Performance

Written by \`${command}\` on ${at.toISOString().slice(0, 10)}, on ${machine}; each figure from ${runs} runs.
Services, broker, database, load and the providers that accept everything share these cores, so speed is theirs together; CPU is
counted for each process. The floor sends the same requests with \`node:http2\` and nothing else (for Web Push it encrypts them), in the
same run. Herald's figures include the audience, the ledger of every device, open tokens and streams on disk, and a run counts
only when every device got its push once.
${plot(tables)}
${tables.map(section).join("\n\n")}
`;
};
