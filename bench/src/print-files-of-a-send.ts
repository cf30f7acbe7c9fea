import { executedFilesOfSends, filesOfEach } from "./files-of-a-send.ts";

/** `node --conditions=@herald/source bench/src/print-files-of-a-send.ts`: the source files that one send to a device needs to run. */

/** Some forty seconds: longer than the intervals of reports and most sweeps, so that a file which runs by itself is seen without a send. */
const rests = 40;

const windows = await executedFilesOfSends(rests);
// What runs now and then at rest, such as the provider's connection, is a send's, too.
const files = filesOfEach(windows, rests / 2);
const without = filesOfEach(windows, 0);
console.log(files.join("\n"));
const count = (some: readonly string[], prefix: string) => some.filter((file) => file.startsWith(prefix)).length;
console.error(`${files.length} files run for a send. ${without.length} of them never run in 40 s at rest;`);
console.error(
  `${count(without, "services/")} of these are in the services, ${count(without, "services/analytics/")} in analytics.`,
);
