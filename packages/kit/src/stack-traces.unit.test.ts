import { execFile } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, test } from "vitest";

const run = promisify(execFile);
let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "herald-stack-traces-"));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

/** The stack of an error in a bundled program, as its own process prints it. */
const stackIn = async (name: string, map?: string): Promise<string> => {
  const program = join(folder, name);
  await writeFile(program, 'export const fail = () => new RangeError("too much");\n');
  if (map !== undefined) await writeFile(`${program}.map`, map);
  const script = `
    import { mapStackTraces } from ${JSON.stringify(new URL("./stack-traces.ts", import.meta.url).href)};
    mapStackTraces(${JSON.stringify(program)});
    const { fail } = await import(${JSON.stringify(program)});
    process.stdout.write(fail().stack);`;
  const args = ["--conditions=@herald/source", "--input-type=module", "--eval", script];
  return (await run(process.execPath, args)).stdout;
};

/** Maps the whole program to line 5, column 3 of its source. */
const map = JSON.stringify({ version: 3, file: "main.js", names: [], sources: ["services/a.ts"], mappings: "AAIE" });

test("name the sources of a bundled program, and other files as they are", async () => {
  const [first, second, ...others] = (await stackIn("mapped.mjs", map)).split("\n");
  expect(first).toBe("RangeError: too much");
  expect(second).toBe("    at fail (services/a.ts:5:3)");
  expect(others.join("\n")).toContain("[eval1]");
});

test.each([
  ["no map", undefined],
  ["a map that cannot be read", "{"],
])("are left as they are with %s", async (name, broken) => {
  const program = `${name.replaceAll(" ", "-")}.mjs`;
  expect(await stackIn(program, broken)).toMatch(
    new RegExp(`^RangeError: too much\\n {4}at fail \\(.*${program}:1:\\d+\\)`),
  );
});
