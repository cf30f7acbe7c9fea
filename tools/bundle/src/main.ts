import { join } from "node:path";
import { bundle, type ProgramName, programNames } from "./bundle.ts";
import { buildConsole, buildDocs } from "./pages.ts";
import { writeWebKit } from "./web-kit.ts";

/**
 * `npm run build`: builds the programs of the images, the pages that the gateway serves, and the browser kit; `npm run build -- gateway`
 * builds one of them.
 */

const isName = (name: string): name is ProgramName => (programNames as readonly string[]).includes(name);

const others = ["console", "web"];
const root = join(import.meta.dirname, "../../..");
const asked = process.argv.slice(2);
const unknown = asked.filter((name) => !isName(name) && !others.includes(name));
if (unknown.length > 0) {
  console.error(`there is no ${unknown.join(", ")}; there are ${[...programNames, ...others].join(", ")}`);
  process.exit(1);
}
await bundle(root, asked.length > 0 ? asked.filter(isName) : programNames);
if (asked.length === 0 || asked.includes("gateway")) await buildDocs(root);
if (asked.length === 0 || asked.includes("console") || asked.includes("gateway")) await buildConsole(root);
if (asked.length === 0 || asked.includes("web")) await writeWebKit(root);
