import { mkdtemp, readFile, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Provider } from "@herald/contracts";
import { type System, startSystem } from "./herald.ts";
import { help, type Options, readOptions } from "./options.ts";
import { page } from "./page.ts";
import { plot } from "./plot.ts";
import { end, firstLine, start } from "./processes.ts";
import type { Profiler } from "./profiler.ts";
import type { Context } from "./row.ts";
import { allRows } from "./rows/all-rows.ts";
import type { Sink } from "./sinks.ts";
import { figureIn, printTable, type Table } from "./table.ts";
import { topFunctions } from "./top-functions.ts";

const docs = join(import.meta.dirname, "../../docs/reference");
const args = process.argv.slice(2);
const functionsShown = 10;

const options = ((): Options => {
  try {
    return readOptions(args, allRows, Boolean(process.env.HERALD_BENCH_PEER));
  } catch (error) {
    console.error(`${(error as Error).message}\n\`npm run bench -- --help\` lists rows and options.`);
    process.exit(1);
  }
})();
if (options.help) {
  console.log(help(allRows));
  process.exit(0);
}
const { rows, runs } = options;

const printProfile = (profiler: Profiler): void => {
  for (const [service, profiles] of profiler.profiles()) {
    console.log(`\n${service}: functions with the most self time`);
    for (const { name, selfMs, share } of topFunctions(profiles, functionsShown))
      console.log(`  ${selfMs.toFixed(0).padStart(7)} ms ${(share * 100).toFixed(1).padStart(5)} %  ${name}`);
  }
};

console.log("The sinks accept everything and count; HTTP/2 framed by hand in Node, each a process of its own.");
const profiles = options.profile ? await mkdtemp(join(tmpdir(), "herald-profiles-")) : undefined;
if (profiles !== undefined) console.log(`CPU profiles are kept in ${profiles}; figures are slower than without.`);
const processes = Provider.options.map((provider) => start("bench/src/sink.ts", [provider]));

const tables: Table[] = [];
const pageFile = join(docs, "performance.md");
const earlier = await readFile(pageFile, "utf8");

const measure = async (context: Context): Promise<void> => {
  const { system } = context;
  const write = async (): Promise<void> => {
    await writeFile(pageFile, page({ tables, runs, args, versions: system.versions, at: new Date(), earlier }));
    if (figureIn(tables)("direct") !== undefined)
      await writeFile(join(docs, "performance.svg"), plot(tables, context.peer?.name));
  };
  for (const row of rows) {
    system.profiler?.begin(row.name);
    try {
      for await (const table of row.measure(context)) {
        printTable(table, runs);
        tables.push(table);
        // Write at once, so that the failure of a later row loses no results.
        if (options.write) await write();
      }
      if (system.profiler) printProfile(system.profiler);
    } catch (error) {
      // The rows after a failed row are still measured.
      console.error(`\n${row.name}: ${(error as Error).message}`);
      for (const line of system.lastWords()) console.error(`  ${line}`);
      process.exitCode = 1;
    }
  }
};

let system: System | undefined;
try {
  const [apns, fcm, webpush] = await Promise.all(processes.map((process) => firstLine<Sink>(process)));
  if (!apns || !fcm || !webpush) throw new Error("a sink did not start");
  const sinks = { apns, fcm, webpush };
  system = await startSystem(sinks, profiles);
  await measure({ ...options, system, sinks, sizes: options.devices });
} finally {
  await system?.stop();
  for (const process of processes) await end(process);
}
