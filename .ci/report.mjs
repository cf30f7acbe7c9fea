// Prints what failed, what each part took, the slowest files and the counts of all tests: `node .ci/report.mjs <folder> <seconds of all>`.
// The folder has `parts.tsv` (name, seconds, exit code), what each part said, what vitest wrote for each suite, and `faults.json`.
// Exits with 1 if anything failed.
import { existsSync, readFileSync } from "node:fs";
import { join, relative } from "node:path";

const [folder = "", took] = process.argv.slice(2);
const slowest = 10;

const read = (name) => readFileSync(join(folder, name), "utf8");
/** What a suite has run. A fault row counts as a test and as a file. */
function resultsOf(part) {
  const name = `${part.replace(/^test:faults$/, "faults")}.json`;
  if (!existsSync(join(folder, name))) return { passed: 0, failures: [], files: [] };
  const report = JSON.parse(read(name));
  if (part === "test:faults") {
    const files = report.rows.map(({ name: row, seconds }) => ({ file: `fault row ${row}`, seconds }));
    return { passed: report.passed, failures: report.failures.map((why) => `fault row ${why}`), files };
  }
  const failures = report.testResults.flatMap(({ name: file, status, message, assertionResults }) => {
    const failed = assertionResults.filter((test) => test.status === "failed");
    const tests = failed.map((test) => `${file}: ${test.fullName}\n${test.failureMessages.join("\n").slice(0, 1500)}`);
    // What a file starts or stops for all its tests failed.
    return tests.length === 0 && status === "failed" ? [`${file}: ${message}`] : tests;
  });
  const files = report.testResults.map(({ name: file, startTime, endTime }) => ({
    file: relative(process.cwd(), file),
    seconds: (endTime - startTime) / 1000,
  }));
  return { passed: report.numPassedTests, failures, files };
}

/** A part may fail without a failed test: by an error that no test awaited, or before its first test. */
function lastWords(part) {
  const lines = read(`${part}.log`).split("\n");
  const unhandled = lines.findIndex((line) => line.includes("Unhandled"));
  const words = unhandled < 0 ? lines.filter((line) => line.trim()).slice(-6) : lines.slice(unhandled, unhandled + 7);
  return words.map((line) => `  ${line.slice(0, 300)}`).join("\n");
}

const parts = read("parts.tsv")
  .trim()
  .split("\n")
  .map((line) => {
    const [name = "", seconds, exitCode] = line.split("\t");
    return { name, seconds: Number(seconds), ok: exitCode === "0", ...resultsOf(name) };
  });
const sum = (counts) => counts.reduce((all, one) => all + one, 0);
const passed = sum(parts.map((part) => part.passed));
const failed = sum(parts.map((part) => part.failures.length || (part.ok ? 0 : 1)));

// Named again here, because a long log is read from its end.
for (const { failures } of parts) for (const why of failures) console.log(`FAILED ${why.replaceAll("\n", "\n  ")}`);
for (const { name, ok } of parts) if (!ok) console.log(`failed: npm run ${name}\n${lastWords(name)}`);

const minutes = (seconds) => (seconds / 60).toFixed(1);
const row = (name, figure, tests) => console.log(`${name.padEnd(60)} ${figure.padStart(8)} ${tests.padStart(7)}`);
console.log();
row("suite", "minutes", "tests");
for (const { name, seconds, passed: good, failures } of parts) {
  const count = good + failures.length;
  row(`npm run ${name}`, minutes(seconds), count === 0 ? "" : String(count));
}
row("all, some beside others", minutes(took), String(passed + failed));
console.log();
row("slowest files", "seconds", "");
const files = parts.flatMap((part) => part.files).sort((one, other) => other.seconds - one.seconds);
for (const { file, seconds } of files.slice(0, slowest)) row(file, seconds.toFixed(0), "");
console.log(`\n${passed} passed, ${failed} failed`);
process.exit(failed === 0 ? 0 : 1);
