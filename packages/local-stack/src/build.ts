import { join } from "node:path";
import { bundle, type ProgramName, programNames } from "./bundle/bundle.ts";

/** `npm run build`: makes what images run; `npm run build -- gateway` for one of Herald's programs alone. */

const isName = (name: string): name is ProgramName => (programNames as readonly string[]).includes(name);

const asked = process.argv.slice(2);
const unknown = asked.filter((name) => !isName(name));
if (unknown.length > 0) {
  console.error(`there is no ${unknown.join(", ")}; there are ${programNames.join(", ")}`);
  process.exit(1);
}
await bundle(join(import.meta.dirname, "../../.."), asked.length > 0 ? asked.filter(isName) : programNames);
