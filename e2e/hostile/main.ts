import { readdirSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { startVitest } from "vitest/node";
import { hostileVariables } from "./scale.ts";

/** `npm run test:hostile`: attacks every interface of the running system, and shows each attack and its result. */

const suffix = ".hostile.test.ts";
const attacks = readdirSync(import.meta.dirname)
  .filter((file) => file.endsWith(suffix))
  .map((file) => file.slice(0, -suffix.length));

const usage = `npm run test:hostile -- [--full] [--only <attack>[,<attack>]] [--examples <n>] [--write]
  --full      as much of each attack as docs/reference/reliability.md promises: an hour instead of five minutes
  --only      ${attacks.join(", ")}
  --examples  of schemathesis, for each operation and phase; default: 5, with --full 1000
  --write     puts the table into docs/reference/reliability.md; lines of attacks that did not run stay`;

const { values } = parseArgs({
  options: {
    full: { type: "boolean", default: false },
    only: { type: "string", multiple: true, default: [] },
    examples: { type: "string" },
    write: { type: "boolean", default: false },
    help: { type: "boolean", default: false },
  },
});
const only = values.only.flatMap((names) => names.split(","));
const unknown = only.filter((name) => !attacks.includes(name));
if (values.help || unknown.length > 0) {
  process.stderr.write(`${unknown.length > 0 ? `There is no attack ${unknown.join(", ")}.\n` : ""}${usage}\n`);
  process.exit(values.help ? 0 : 2);
}

process.env[hostileVariables.full] = values.full ? "1" : "";
process.env[hostileVariables.write] = values.write ? "1" : "";
process.env[hostileVariables.examples] =
  values.examples ?? process.env[hostileVariables.examples] ?? (values.full ? "1000" : "5");
const files = only.map((name) => `${name}${suffix}`);
const vitest = await startVitest(files, { config: join(import.meta.dirname, "vitest.config.ts"), run: true });
await vitest.close();
