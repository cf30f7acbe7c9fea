import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { readReliability, writeReliability } from "../harness/reliability-page.ts";
import type { Row } from "./row.ts";
import { type Outcome, page, type RowResult, remarks, resultOf, screenTable } from "./show.ts";
import { openStages } from "./stages.ts";
import { rows } from "./table.ts";
import { seconds } from "./trial.ts";

/** `npm run test:faults`: breaks every part of a real system, and shows the result of every accepted notification. */

const usage = `npm run test:faults -- [--long] [--only <row>[,<row>]] [--lanes <n>] [--older <commit>] [--write]
  --long    minutes for a row instead of seconds
  --only    ${rows.map(({ name }) => name).join(", ")}
  --lanes   rows that run at a time; default 3, 1 with --long
  --older   the commit to run beside this tree; default: the oldest that this one supports
  --report  a file for how many rows passed, failed (and why) and could not be tried here, and the seconds of each, as JSON
  --logs    a folder for what the parts of a system said in rows that failed
  --write   writes docs/reference/reliability.md but for its part on hostile input`;

const say = (line: string) => process.stderr.write(`${line}\n`);
const { values } = parseArgs({
  options: {
    long: { type: "boolean", default: false },
    only: { type: "string", multiple: true, default: [] },
    lanes: { type: "string" },
    older: { type: "string" },
    report: { type: "string" },
    logs: { type: "string" },
    write: { type: "boolean", default: false },
    help: { type: "boolean", default: false },
  },
});
const only = values.only.flatMap((names) => names.split(","));
const unknown = only.filter((name) => !rows.some((row) => row.name === name));
if (values.help || unknown.length > 0) {
  say(unknown.length > 0 ? `There is no row ${unknown.join(", ")}.\n${usage}` : usage);
  process.exit(values.help ? 0 : 2);
}
const chosen = rows.filter(({ name }) => only.length === 0 || only.includes(name));
const lanes = Number(values.lanes ?? (values.long ? 1 : 3));

const begun = performance.now();
const stages = await openStages({ long: values.long, older: values.older }, say);
const outcomes = new Map<string, Outcome>();
/** What explains each failed row, in lines. */
const failures: string[] = [];
/** Rows with a common fixture run one after another in one lane. The largest groups begin first, so that no lane waits for one at the end. */
const groups = [...Map.groupBy(chosen, (row) => row.fixture ?? row).values()];
const queue = groups.toSorted((one, other) => other.length - one.length).values();

async function work(): Promise<void> {
  const lane = stages.lane();
  for (const group of queue) {
    for (const row of group) await tryRow(lane, row);
    await lane.release();
  }
}

async function tryRow(lane: ReturnType<typeof stages.lane>, row: Row): Promise<void> {
  const from = performance.now();
  const done = await lane.run(row.run).then(
    (findings) => ({ findings }),
    (error: unknown) => ({ error: error instanceof Error ? error : new Error(String(error)) }),
  );
  const outcome: Outcome = { row, tookMs: performance.now() - from, ...done };
  outcomes.set(row.name, outcome);
  say(`${resultOf(outcome).padEnd(8)} ${row.name}, ${seconds(outcome.tookMs)}`);
  for (const line of [...remarks(outcome), ...(outcome.findings?.notes ?? [])]) say(`         ${line}`);
  if (resultOf(outcome) !== "failed") return;
  const logged = lane.logs()?.worth(10, 400) ?? "";
  for (const line of outcome.findings?.repeats ?? []) say(`         ${line}`);
  say(logged);
  failures.push([...remarks(outcome), logged].join("\n"));
  if (values.logs) {
    const lines = lane.logs()?.lines.map(({ part, line }) => `${part.padEnd(10)} | ${line}\n`) ?? [];
    await writeFile(join(values.logs, `${row.name}.log`), lines.join(""));
  }
  await lane.discard();
}
await Promise.all(Array.from({ length: Math.min(lanes, chosen.length) }, work));
await stages.close();

const all = chosen.flatMap(({ name }) => outcomes.get(name) ?? []);
console.log(`\n${screenTable(all)}\n`);
const count = (result: RowResult) => all.filter((one) => resultOf(one) === result).length;
const failed = count("failed");
if (values.report) {
  const took = all.map(({ row, tookMs }) => ({ name: row.name, seconds: tookMs / 1_000 }));
  const report = { passed: count("passed"), failed, notHere: count("not here"), failures, rows: took };
  await writeFile(values.report, JSON.stringify(report));
}
console.log(`${all.length} rows in ${seconds(performance.now() - begun)}, ${failed} failed`);
if (values.write) {
  const command = `npm run test:faults${values.long ? " -- --long" : ""}`;
  const run = { outcomes: all, long: values.long, command, at: new Date() };
  await writeReliability({ faults: page(run, rows, (await readReliability()).faults) });
}
process.exit(failed === 0 ? 0 : 1);
