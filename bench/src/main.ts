import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { Provider } from "@herald/contracts";
import { startSystem } from "./herald.ts";
import { page } from "./page.ts";
import { end, firstLine, start } from "./processes.ts";
import { printTable, type Table } from "./row.ts";
import { allRows } from "./rows/all-rows.ts";
import type { Sink } from "./sinks.ts";

const names = allRows.map(({ name }) => name);
const { values } = parseArgs({
  options: {
    /** Rows, with commas between them; absent: all. */
    only: { type: "string", default: names.join(",") },
    devices: { type: "string", default: "10000,100000" },
    /** Devices of the row that shows whether cost grows with the audience. */
    largest: { type: "string", default: "1000000" },
    opens: { type: "string", default: "50000" },
    /** Opens that are stored, and devices that are listed, by project. */
    "opens-stored": { type: "string", default: "10000,100000" },
    listed: { type: "string", default: "1000,100000" },
    runs: { type: "string", default: "3" },
    /** Writes what was measured to docs/performance.md. */
    write: { type: "boolean", default: false },
  },
});
const wanted = values.only.split(",");
const unknown = wanted.filter((name) => !names.includes(name));
if (unknown.length > 0) {
  console.error(`--only: there is no ${unknown.join(", ")}; there are ${names.join(", ")}`);
  process.exit(1);
}
const runs = Number(values.runs);
const performancePage = join(import.meta.dirname, "../../docs/performance.md");

console.log("The sinks accept everything and count; HTTP/2 framed by hand in Node, each a process of its own.");
const processes = Provider.options.map((provider) => start("bench/src/sink.ts", [provider]));
const [apns, fcm, webpush] = await Promise.all(processes.map((process) => firstLine<Sink>(process)));
if (!apns || !fcm || !webpush) throw new Error("a sink did not start");
const sinks = { apns, fcm, webpush };
const system = await startSystem(sinks);
const numbers = (text: string): number[] => text.split(",").map(Number);
const context = {
  system,
  sinks,
  runs,
  sizes: numbers(values.devices),
  largest: Number(values.largest),
  opens: Number(values.opens),
  opensStored: numbers(values["opens-stored"]),
  listed: numbers(values.listed),
};
const tables: Table[] = [];
try {
  for (const row of allRows.filter(({ name }) => wanted.includes(name)))
    for await (const table of row.measure(context)) {
      printTable(table, runs);
      tables.push(table);
      // At once: what a later row meets must not lose what was measured.
      if (values.write) await writeFile(performancePage, page(tables, runs, process.argv.slice(2), new Date()));
    }
} finally {
  await system.stop();
  for (const process of processes) await end(process);
}
