import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";

const root = join(import.meta.dirname, "..");

const declared = /^export (?:abstract )?(?:async )?(?:const|let|function\*?|class|type|interface) (\w+)/gm;

/** Names that several modules export by convention, and why their meaning stays clear. */
const conventions: Readonly<Record<string, string>> = {
  createApp: "builds each service",
  createStores: "builds the stores of each service",
  Deps: "what the functions of one package or service need",
  retentionRules: "what each service removes, and when",
  HeraldError: "an error of the API: thrown by servers, and again by their client",
  EventType: "the client has no dependency, so it writes this type of contracts itself",
  ExportFormat: "the client has no dependency, so it writes this type of contracts itself",
  Herald: "what an app imports: on a server from the client, in a browser from the web kit",
  HeraldOptions: "options of either `Herald`",
  createHerald: "what an app imports: from the web kit or from React Native's",
  KindChoice: "a kind of notifications, as each kit lets a person choose",
  KindChoices: "what the preferences of each kit return",
  PushPayload: "a push, as each kit hands it to the app",
  PushStatus: "what each kit says about its device",
  List: "a list of the client, and the console's component that shows it",
  Problem: "a problem of the API, and the console's component that shows it",
  settingsFingerprint: "the command line knows no contracts, so it computes the fingerprints itself",
  tokenFingerprint: "the command line knows no contracts, so it computes the fingerprints itself",
  TestPush: "a test push, and the console's component that sends it",
};

const modules = globSync("{packages,services,tools}/*/src/**/*.{ts,tsx}", { cwd: root }).filter(
  (file) => !/\.test\.tsx?$|\/api-types\.ts$/.test(file),
);

/** The modules that declare and export each name. A re-export is no declaration. */
const exporters = new Map<string, Set<string>>();
for (const path of modules)
  for (const [, name = ""] of readFileSync(join(root, path), "utf8").matchAll(declared))
    exporters.set(name, (exporters.get(name) ?? new Set()).add(path));

const shared = [...exporters].filter(([, paths]) => paths.size > 1);

test("each exported name of packages, services and tools has one meaning", () => {
  expect(exporters.size).toBeGreaterThan(1_000);
  expect(shared.filter(([name]) => !Object.hasOwn(conventions, name)).map(([name, paths]) => [name, ...paths])).toEqual(
    [],
  );
});

test("every convention is in use", () => {
  const names = new Set(shared.map(([name]) => name));
  expect(Object.keys(conventions).filter((name) => !names.has(name))).toEqual([]);
});
