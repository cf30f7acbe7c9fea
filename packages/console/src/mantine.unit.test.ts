import { access, readdir, readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { expect, test } from "vitest";

const core = dirname(createRequire(import.meta.url).resolve("@mantine/core/styles.css"));

/** Names that a file imports from Mantine. */
const importedBy = (source: string): string[] =>
  [...source.matchAll(/import \{([^}]*)\} from "@mantine\/core"/g)].flatMap(([, names = ""]) =>
    names.split(",").map((name) => name.trim()),
  );

const hasStyles = (name: string) =>
  access(join(core, `styles/${name}.css`)).then(
    () => true,
    () => false,
  );

test("each component of Mantine that a page uses has its styles", async () => {
  const files = await readdir(import.meta.dirname, { recursive: true });
  const sources = await Promise.all(
    files.filter((name) => name.endsWith(".tsx")).map((name) => readFile(join(import.meta.dirname, name), "utf8")),
  );
  const used = [...new Set(sources.flatMap(importedBy))].filter((name) => /^[A-Z]/.test(name));
  expect(used).toContain("Button");
  const styles = await readFile(join(import.meta.dirname, "mantine.css"), "utf8");
  const missing: string[] = [];
  for (const name of used) if ((await hasStyles(name)) && !styles.includes(`/${name}.css"`)) missing.push(name);
  expect(missing).toEqual([]);
});
