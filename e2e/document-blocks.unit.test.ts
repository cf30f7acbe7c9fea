import { globSync, readFileSync } from "node:fs";
import { basename, join } from "node:path";
import { ChangeNotification, parseCondition, RegisterDevice, SendNotification } from "@herald/contracts";
import { describe, expect, test } from "vitest";
import { parse } from "yaml";
import { heldBlocks } from "./harness/held-blocks.ts";

const root = join(import.meta.dirname, "..");
const read = (path: string): string => readFileSync(join(root, path), "utf8");
/** The pages that people copy from. */
const pages = globSync(
  ["README.md", "docs/{tutorial,how-to,reference}/*.md", "packages/{cli,client,react-native,simulators,web}/README.md"],
  { cwd: root },
).toSorted();

type Block = { readonly page: string; readonly heading: string; readonly tag: string; readonly text: string };

/** The blocks of a page in order, each under the heading above it. */
const blocksOf = (page: string): Block[] => {
  let heading = "";
  return [...read(page).matchAll(/^#+ ([^\n]+)$|^ *```(\w*)\n(.*?)^ *```$/gms)].flatMap(
    ([, found, tag = "", text = ""]) => {
      if (found !== undefined) heading = found;
      return found === undefined ? [{ page, heading, tag, text }] : [];
    },
  );
};
const blocks = pages.flatMap(blocksOf);
const inPage = (page: string, tag: string): Block[] =>
  blocks.filter((block) => block.page === page && block.tag === tag);

/** Of each block, how it is held; undefined: not at all. */
const heldOf = (page: string): (readonly [Block, string | undefined])[] => {
  const entries = heldBlocks[page] ?? {};
  const count = new Map<string, number>();
  return blocksOf(page).map((block) => {
    const at = count.get(block.heading) ?? 0;
    count.set(block.heading, at + 1);
    const held = entries[block.heading] ?? entries["*"];
    return [block, typeof held === "string" || held === undefined ? held : held[at]];
  });
};

describe("each block", () => {
  test.for(pages)("of %s is held by something; add it to e2e/harness/held-blocks.ts", (page) => {
    const loose = heldOf(page).filter(
      ([{ tag }, held]) => held === undefined || (tag === "sh" && held.startsWith("shown: a ")),
    );
    expect(loose.map(([{ heading, text }]) => [heading, text.split("\n")[0]])).toEqual([]);
  });

  test("is in the list of a page that has it", () => {
    for (const [page, entries] of Object.entries(heldBlocks)) {
      const found = Object.groupBy(blocksOf(page), ({ heading }) => heading);
      for (const [heading, held] of Object.entries(entries)) {
        if (heading !== "*") expect.soft(found, `${page} # ${heading}`).toHaveProperty([heading]);
        if (typeof held !== "string") expect.soft(found[heading]?.length, `${page} # ${heading}`).toBe(held.length);
      }
    }
  });

  test("that a file runs is named there", () => {
    const run = pages.flatMap((page) => heldOf(page).map(([{ heading }, held = ""]) => ({ page, heading, held })));
    for (const { page, heading, held } of run) {
      const [, file = "", what] = /^(?:run|rendered|compiled|read) ([^:\s]+)(?:: (.*))?$/.exec(held) ?? [];
      if (file === "" || what !== undefined) continue;
      const text = read(file);
      // A test that runs a family of pages has their names in a table; two pages are run by their commands alone.
      const named = [
        basename(page),
        /move-from-(\w+)/.exec(page)?.[1] ?? page,
        "npm test",
        "infra/release/main.ts",
        "infra/backup",
      ];
      expect
        .soft(
          named.some((name) => text.includes(name)),
          `${file} runs ${page} # ${heading}`,
        )
        .toBe(true);
    }
  });

  test("has no placeholder that a reader must guess", () => {
    const shells = blocks.filter(({ tag }) => ["sh", "", "ini"].includes(tag));
    expect(shells.length).toBeGreaterThan(80);
    const guessed = shells.filter(
      ({ text }) => /<[a-z][a-z -]*>/.test(text) || /…(?! *$)/m.test(text.replaceAll(/#.*$/gm, "")),
    );
    expect(guessed.map(({ page, heading, text }) => [page, heading, text])).toEqual([]);
  });
});

/** What a block of JSON is by its only key. */
const bodies = { device: RegisterDevice, notification: SendNotification };

test("every notification and device that a page shows is one that the API takes", () => {
  const shown = blocks.filter(({ tag, page }) => tag === "json" && page.startsWith("docs/"));
  expect(shown.length).toBeGreaterThan(8);
  for (const { page, heading, text } of shown) {
    const body = JSON.parse(text.replaceAll("…", "5b".repeat(32)));
    if (!("device" in body) && !("notification" in body)) continue;
    const schema =
      heading === "While it is sent" ? ChangeNotification : "device" in body ? bodies.device : bodies.notification;
    expect.soft(schema.safeParse(body).error?.issues ?? [], `${page} # ${heading}`).toEqual([]);
  }
});

test("the conditions of the page on targets parse", () => {
  const [examples] = inPage("docs/reference/targeting.md", "");
  const conditions = (examples?.text ?? "")
    .trim()
    .split("\n")
    .map((line) => line.replace(/^condition:/, ""));
  expect(conditions.length).toBeGreaterThan(3);
  for (const condition of conditions) expect(parseCondition(condition), condition).toHaveProperty("condition");
});

describe("what a page on a kit calls", () => {
  /** Of the platform, not of the kit. */
  const theirs =
    /^(requestPermissions|arrayOf|requestPermissionsAsync|getIntent|onCreate|getDevicePushTokenAsync|addEventListener|log|error|getElementById|querySelector|register)$/;
  test.each([
    ["docs/how-to/connect-an-android-app.md", "kits/android/src/main/**/*.kt"],
    ["docs/how-to/connect-swift.md", "{kits/swift,examples/swift}/**/*.swift"],
    ["docs/how-to/connect-react-native.md", "packages/react-native/src/*.ts"],
    ["packages/react-native/README.md", "packages/react-native/src/*.ts"],
    ["docs/how-to/connect-web.md", "packages/web/src/**/*.ts"],
    ["packages/web/README.md", "packages/web/src/**/*.ts"],
  ])("is in the kit: %s", (page, sources) => {
    const source = globSync(sources, { cwd: root }).map(read).join("\n");
    const code = blocks.filter((block) => block.page === page && /^(kotlin|swift|ts|js)$/.test(block.tag));
    expect(code.length).toBeGreaterThan(0);
    const called = code.flatMap(({ text }) =>
      [...text.replaceAll(/\/\/.*$/gm, "").matchAll(/\.(\w+)\(/g)].map(([, name = ""]) => name),
    );
    expect(
      [...new Set(called)].filter((name) => !theirs.test(name) && !new RegExp(`\\b${name}\\b`).test(source)),
    ).toEqual([]);
  });

  test("is configured by keys that it reads", () => {
    const android = inPage("docs/how-to/connect-an-android-app.md", "xml").flatMap(({ text }) => [
      ...text.matchAll(/android:name="(io\.herald\.\w+)"/g),
    ]);
    const swift = inPage("docs/how-to/connect-swift.md", "xml").flatMap(({ text }) => [
      ...text.matchAll(/<key>(Herald\w+)</g),
    ]);
    expect([android.length, swift.length]).toEqual([2, 2]);
    const sources = globSync(["kits/android/src/main/**/*.kt", "kits/swift/**/*.swift"], { cwd: root })
      .map(read)
      .join("\n");
    for (const [, key = ""] of [...android, ...swift]) expect(sources).toContain(key);
  });

  test("of React Native is configured by settings that its plugin reads", () => {
    const [block] = inPage("docs/how-to/connect-react-native.md", "json");
    const [[name, settings]] = JSON.parse(block?.text ?? "").expo.plugins;
    expect(name).toBe("@herald/react-native");
    const plugin = read("packages/react-native/app.plugin.cjs");
    for (const key of Object.keys(settings)) expect(plugin).toMatch(new RegExp(`\\b${key}\\b`));
  });

  test("is what the page on Flutter and React Native installs", () => {
    const flutter = /flutter pub add (.+)/.exec(read("docs/how-to/connect-flutter.md"))?.[1]?.trim().split(" ") ?? [];
    const { dependencies } = parse(read("examples/flutter/pubspec.yaml"));
    expect(Object.keys(dependencies)).toEqual(expect.arrayContaining(flutter));
    const native =
      /npx expo install (.+)/.exec(read("docs/how-to/connect-react-native.md"))?.[1]?.trim().split(" ") ?? [];
    const { peerDependencies, name } = JSON.parse(read("packages/react-native/package.json"));
    expect([name, ...Object.keys(peerDependencies)]).toEqual(expect.arrayContaining(native));
  });
});

test("blocks of JavaScript parse", () => {
  for (const { text } of inPage("docs/how-to/rotate-vapid-keys.md", "js"))
    expect(() => new Function(`return async () => {${text}}`)).not.toThrow();
});
