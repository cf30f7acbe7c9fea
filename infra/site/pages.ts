import { existsSync } from "node:fs";
import { cp, mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { dirname, join, normalize, relative } from "node:path";
import { apiPages } from "./api-pages.ts";

/**
 * Writes the pages of the documentation site into `pages`, from Markdown that reads well in the repository too. Links between pages follow
 * them to their places on the site. Links to other files lead to the repository that HERALD_SITE_REPOSITORY names, or become plain text.
 */

const root = join(import.meta.dirname, "../..");
const folder = join(import.meta.dirname, "pages");
const repository = process.env.HERALD_SITE_REPOSITORY?.replace(/\/+$/, "");

/** Pages that have another place on the site than below `docs`. */
const moved: Readonly<Record<string, string>> = {
  "infra/site/home.md": "index.md",
  "docs/README.md": "contents.md",
  "docs/adr/README.md": "adr/index.md",
  "ARCHITECTURE.md": "explanation/architecture.md",
  "CHANGELOG.md": "changelog.md",
  "packages/client/README.md": "reference/client.md",
  "packages/cli/README.md": "reference/command-line.md",
  "packages/web/README.md": "reference/browser-kit.md",
  "packages/simulators/README.md": "reference/simulators.md",
};

/** The place on the site of a file or folder of the repository; undefined if it has none. */
const placeOf = (path: string): string | undefined => {
  const readme = join(path, "README.md");
  if (moved[path] ?? moved[readme]) return moved[path] ?? moved[readme];
  return path.startsWith("docs/") && existsSync(join(root, path)) ? path.slice("docs/".length) : undefined;
};

/** A link of a page at `path`, as the site has it; undefined if it leads nowhere from there. */
const linkOnSite = (link: string, path: string, page: string): string | undefined => {
  if (/^(?:[a-z]+:|#|\/)/.test(link)) return link;
  const [target = "", fragment] = link.split("#");
  const file = normalize(join(dirname(path), target)).replace(/\/$/, "");
  if (!existsSync(join(root, file))) throw new Error(`${path}: the link ${link} leads nowhere`);
  const place = placeOf(file);
  const end = fragment === undefined ? "" : `#${fragment}`;
  if (place !== undefined) return `./${relative(dirname(page), place)}${end}`;
  return repository === undefined ? undefined : `${repository}/blob/HEAD/${file}${end}`;
};

const withLinks = (markdown: string, path: string, page: string): string =>
  markdown
    .split(/(^```[\s\S]*?^```$)/m)
    .map((part, index) => {
      if (index % 2 === 1) return part; // code
      // Vue would evaluate what stands between braces.
      const quoted = part.replace(/`([^`\n]*\{\{[^`\n]*)`/g, (_, code) => `<code v-pre>${code}</code>`);
      return quoted.replace(
        /(!?)\[((?:[^[\]]|!?\[[^\]]*\](?:\([^)]*\))?)*)\]\(([^)\s]+)\)/g,
        (_, image, text, target) => {
          const link = linkOnSite(target, path, page);
          return link === undefined ? text : `${image}[${text}](${link})`;
        },
      );
    })
    .join("");

type Item = { readonly text: string; readonly link?: string; readonly items?: Item[]; readonly collapsed?: boolean };

/** The groups of the index, which is a list of links below headings, as the site's menu. */
const menuOf = (index: string): Item[] =>
  index
    .split(/^## /m)
    .slice(1)
    .map((section) => {
      const [text = "", ...lines] = section.split("\n");
      const items: Item[] = [];
      for (const line of lines) {
        const part = /^(\w[\w ]*):$/.exec(line)?.[1];
        if (part !== undefined) items.push({ text: part, items: [], collapsed: true });
        const [, name, link] = /^- \[([^\]]+)\]\(([^)]+)\)/.exec(line) ?? [];
        const place = link && placeOf(normalize(join("docs", link)));
        const into = items.at(-1)?.items ?? items;
        if (name && place?.endsWith(".md")) into.push({ text: name, link: `/${place.replace(/\.md$/, "")}` });
      }
      return { text, items };
    });

const write = async (page: string, text: string): Promise<void> => {
  await mkdir(dirname(join(folder, page)), { recursive: true });
  await writeFile(join(folder, page), text);
};

await rm(folder, { recursive: true, force: true });
const files = await readdir(join(root, "docs"), { recursive: true });
const pages = files.filter((file) => file.endsWith(".md")).map((file) => `docs/${file}`);
for (const path of new Set([...pages, ...Object.keys(moved)])) {
  const page = placeOf(path) ?? path;
  await write(page, withLinks(await readFile(join(root, path), "utf8"), path, page));
}
for (const file of files.filter((name) => /\.(?:png|svg|json)$/.test(name)))
  await cp(join(root, "docs", file), join(folder, file.endsWith(".json") ? `public/${file}` : file));
await cp(join(root, "docs/images/console-overview.png"), join(folder, "public/console-overview.png"));
await cp(join(root, "packages/console/public/icon.svg"), join(folder, "public/icon.svg"));

const api = apiPages(JSON.parse(await readFile(join(root, "docs/reference/openapi.json"), "utf8")));
for (const { page, text } of api) await write(page, text);
const menu = menuOf(await readFile(join(root, "docs/README.md"), "utf8"));
const reference = menu.findIndex(({ text }) => text === "Reference");
const apiItems = api.map(({ page, name }) => ({ text: name, link: `/${page.replace(/\.md$/, "")}` }));
const home = await readFile(join(folder, "index.md"), "utf8");
for (const [, page = ""] of home.matchAll(/link: \/(\S*)/g))
  if (!existsSync(join(folder, page.endsWith("/") ? `${page}index.md` : `${page}.md`)))
    throw new Error(`home.md: the page /${page} does not exist`);
await write("menu.json", JSON.stringify(menu.toSpliced(reference, 0, { text: "API", items: apiItems })));
