import { parseArgs } from "node:util";
import { startSystem } from "./herald.ts";
import { end, firstLine, start } from "./processes.ts";
import { type Context, printTable } from "./row.ts";
import { allRows } from "./rows/all-rows.ts";

const names = allRows.map(({ name }) => name);
const { values } = parseArgs({
  options: {
    /** Rows, with commas between them; absent: all. */
    only: { type: "string", default: names.join(",") },
    devices: { type: "string", default: "10000,100000" },
    opens: { type: "string", default: "50000" },
    runs: { type: "string", default: "3" },
  },
});
const wanted = values.only.split(",");
const unknown = wanted.filter((name) => !names.includes(name));
if (unknown.length > 0) {
  console.error(`--only: there is no ${unknown.join(", ")}; there are ${names.join(", ")}`);
  process.exit(1);
}
const runs = Number(values.runs);

console.log("The sink answers 200 and counts; HTTP/2 framed by hand in Node, a process of its own.");
const sinkProcess = start("bench/src/sink.ts");
const sink = await firstLine<Context["sink"]>(sinkProcess);
const system = await startSystem(sink);
const context = { system, sink, runs, sizes: values.devices.split(",").map(Number), opens: Number(values.opens) };
try {
  for (const row of allRows.filter(({ name }) => wanted.includes(name)))
    for await (const table of row.measure(context)) printTable(table, runs);
} finally {
  await system.stop();
  await end(sinkProcess);
}
