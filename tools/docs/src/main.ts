import { writeDocs } from "./api/write-docs.ts";

/** `node main.ts <folder>`: writes the documentation that the gateway serves. `npm run build` runs it. */

const [folder] = process.argv.slice(2);
if (folder === undefined) throw new Error("name the folder to write to");
await writeDocs(folder);
