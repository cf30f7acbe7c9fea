import { existsSync, globSync, readFileSync, statSync } from "node:fs";
import { dirname, join, normalize } from "node:path";
import { describe, expect, test } from "vitest";

const root = join(import.meta.dirname, "..");
const read = (path: string): string => readFileSync(join(root, path), "utf8");
const pages = globSync(["*.md", "docs/**/*.md", "{packages,services,tools}/*/README.md", "e2e/README.md"], {
  cwd: root,
});

/** Without code, which may contain brackets that are no links. */
const prose = (markdown: string): string => markdown.replace(/^```.*?^```$/gms, "").replace(/`[^`\n]*`/g, "code");

/** The targets of a page's links and images, except those of other hosts. */
const linksIn = (page: string): { path: string; anchor: string | undefined }[] =>
  [...prose(read(page)).matchAll(/\]\(([^)\s]+)\)/g)].flatMap(([, target = ""]) => {
    if (/^[a-z]+:/.test(target)) return [];
    const [path = "", anchor] = target.split("#");
    return [{ path: path === "" ? page : normalize(join(dirname(page), path)).replace(/\/$/, ""), anchor }];
  });

/** The anchors that GitHub gives the headings of a page. */
const anchorsOf = (page: string): string[] => {
  const seen = new Map<string, number>();
  const text = read(page).replace(/^```.*?^```$/gms, "");
  return [...text.matchAll(/^#+ (.+)$/gm)].map(([, heading = ""]) => {
    const anchor = heading
      .replace(/\[([^\]]*)\]\([^)]*\)/g, "$1")
      .toLowerCase()
      .replace(/[^\p{L}\p{N}\s_-]/gu, "")
      .replace(/\s/g, "-");
    const before = seen.get(anchor) ?? 0;
    seen.set(anchor, before + 1);
    return before === 0 ? anchor : `${anchor}-${before}`;
  });
};

test.for(pages)("every table of %s has a head, so that it is shown as one", (page) => {
  const lines = read(page).split("\n");
  const headless = lines.filter(
    (line, at) =>
      line.startsWith("|") && !lines[at - 1]?.startsWith("|") && !/^\|[-: |]+\|?$/.test(lines[at + 1] ?? ""),
  );
  expect(headless).toEqual([]);
});

test.for(pages)("every link of %s leads to a file, and to a heading that it has", (page) => {
  const dead = linksIn(page).filter(
    ({ path, anchor }) =>
      !existsSync(join(root, path)) ||
      (anchor !== undefined && path.endsWith(".md") && !anchorsOf(path).includes(anchor)),
  );
  expect(dead).toEqual([]);
});

test("docs/README.md names every page under docs, docs/adr/README.md every decision", () => {
  const named = (index: string, folder: string) =>
    linksIn(index).flatMap(({ path }) => (path.endsWith(".md") && path.startsWith(folder) ? [path] : []));
  const documents = pages.filter((page) => page.startsWith("docs/") && page !== "docs/README.md");
  const decisions = documents.filter((page) => page.startsWith("docs/adr/0"));
  expect(new Set(named("docs/README.md", "docs/"))).toEqual(
    new Set(documents.filter((page) => !decisions.includes(page))),
  );
  expect(named("docs/adr/README.md", "docs/adr/").toSorted()).toEqual(decisions.toSorted());
});

test("README leads from what Herald is to the first push, and promises no published version", () => {
  const readme = read("README.md");
  const order = [
    "# Herald\n",
    "![",
    "npm ci && npm start",
    "Herald is ready.",
    "npm ci && npm test",
    "## Send from TypeScript",
  ];
  const places = [...order, "No version is published yet", "npm run release", "## Deploy"].map((text) =>
    readme.indexOf(text),
  );
  expect(places).toEqual(places.toSorted((one, other) => one - other));
  expect(places).not.toContain(-1);
  const [introduction = ""] = readme.slice("# Herald\n\n".length).split("\n\n");
  expect(introduction.match(/\.(?=\s|$)/g)).toHaveLength(3);
  expect(readme).not.toMatch(/<(owner|repository|version)>|npm install (--global )?@herald/);
});

const sources = globSync("{packages,services,tools,e2e,bench,infra}/**/*.{ts,tsx,yaml,yml,conf}", {
  cwd: root,
  exclude: (path) => /(^|\/)(node_modules|dist)$/.test(path),
}).filter((path) => statSync(join(root, path)).isFile());

test("every script of npm and every variable that a page names exists", () => {
  const scripts = (manifest: string): string[] => Object.keys(JSON.parse(read(manifest)).scripts ?? {});
  const manifests = globSync(
    "{package.json,{packages,services,tools}/*/package.json,{e2e,bench,examples}/package.json}",
    {
      cwd: root,
    },
  );
  const known = new Set(manifests.flatMap(scripts));
  const text = [...sources, "docker-compose.yml", "infra/init", "infra/Dockerfile"].map(read).join("\n");
  // The history names what no longer exists.
  const current = pages.filter((page) => page !== "CHANGELOG.md");
  const all = (pattern: RegExp) =>
    new Set(current.flatMap((page) => [...read(page).matchAll(pattern)].map(([, name = ""]) => name)));
  expect([...all(/npm run (?:-s |-w \S+ )?([a-z][a-z:-]*)/g)].filter((name) => !known.has(name))).toEqual([]);
  const variables = [...all(/\b(HERALD_[A-Z0-9_]*[A-Z0-9])\b(?!_?[*…<])/g)].map((name) => name.replace(/_FILE$/, ""));
  expect(variables.length).toBeGreaterThan(40);
  expect(variables.filter((name) => !text.includes(name))).toEqual([]);
});

describe("a decision", () => {
  const numberOf = (page: string) => Number(/adr\/(\d{4})-/.exec(page)?.[1]);
  const decisions = pages.filter((page) => page.startsWith("docs/adr/0"));

  test("has the number of its file, without gaps", () => {
    expect(decisions.map(numberOf).toSorted((one, other) => one - other)).toEqual(decisions.map((_, at) => at + 1));
    for (const page of decisions) expect(read(page)).toMatch(new RegExp(`^# ${numberOf(page)}\\. `));
  });

  test("takes half a page", () => {
    const long = decisions.filter((page) => read(page).split(/\s+/).length > 350);
    expect(long).toEqual([]);
  });

  test("is linked under its own number, and no comment names one that does not exist", () => {
    for (const page of pages)
      for (const [, number, target = ""] of read(page).matchAll(/\[ADR (\d+)\]\(([^)]*)\)/g))
        expect({ page, number: numberOf(target) }).toEqual({ page, number: Number(number) });
    const named = sources.flatMap((path) =>
      [...read(path).matchAll(/\bADR (\d+)/g)].map(([, number]) => Number(number)),
    );
    expect(named.length).toBeGreaterThan(0);
    expect(named.filter((number) => number < 1 || number > decisions.length)).toEqual([]);
  });
});
