import { existsSync, globSync, readFileSync, statSync } from "node:fs";
import { dirname, join, normalize } from "node:path";
import { describe, expect, test } from "vitest";

const root = join(import.meta.dirname, "..");
const read = (path: string): string => readFileSync(join(root, path), "utf8");
const pages = globSync(["*.md", "docs/**/*.md", "{packages,services}/*/README.md", "e2e/README.md"], { cwd: root });

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
    const sources = globSync("{packages,services,e2e,bench,infra}/**/*.{ts,tsx}", {
      cwd: root,
      exclude: (path) => /(^|\/)(node_modules|dist)$/.test(path),
    }).filter((path) => statSync(join(root, path)).isFile());
    const named = sources.flatMap((path) =>
      [...read(path).matchAll(/\bADR (\d+)/g)].map(([, number]) => Number(number)),
    );
    expect(named.length).toBeGreaterThan(0);
    expect(named.filter((number) => number < 1 || number > decisions.length)).toEqual([]);
  });
});
