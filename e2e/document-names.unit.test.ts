import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { durables, EventType, errors, NotificationStatus, OperatorRole, Scope, streams } from "@herald/contracts";
import { expect, test } from "vitest";
import { createProgram } from "../packages/cli/src/program.ts";

/** The names that documents say, against those that the code has. */

const root = join(import.meta.dirname, "..");
const read = (path: string): string => readFileSync(join(root, path), "utf8");
const pages = globSync(["README.md", "ARCHITECTURE.md", "docs/**/*.md", "{packages,services,tools}/*/README.md"], {
  cwd: root,
  exclude: (path) => path.includes("node_modules"),
}).filter((page) => !page.startsWith("docs/adr/"));

type Named = { readonly page: string; readonly name: string };

const named = (pattern: RegExp): Named[] =>
  pages.flatMap((page) => [...read(page).matchAll(pattern)].map(([, name = ""]) => ({ page, name })));

const unknown = (found: readonly Named[], isKnown: (name: string) => boolean): string[] => [
  ...new Set(found.filter(({ name }) => !isKnown(name)).map(({ page, name }) => `${page}: ${name}`)),
];

const code = globSync(["{packages,services,tools,infra}/**/*.{ts,yaml,yml,json}", "bench/src/*.ts"], {
  cwd: root,
  exclude: (path) => /(^|\/)(node_modules|dist|pages|cache)$/.test(path),
})
  .filter((path) => /\.\w+$/.test(path) && !path.endsWith("package-lock.json"))
  .map(read)
  .join("\n");

test("every metric is one that the code has", () => {
  const found = named(/`(herald_\w+)(?:\{[^`]*)?`/g).filter(
    ({ name }) => !/^herald_(registry|dispatch|analytics|session)$/.test(name),
  );
  expect(found.length).toBeGreaterThan(20);
  // Instruments have dots where Prometheus has underscores.
  const instruments = code.replaceAll(".", "_");
  const isKnown = (name: string) => instruments.includes(name.replace(/_(bucket|count|sum|total|seconds)+$/, ""));
  expect(unknown(found, isKnown)).toEqual([]);
});

test("every event type, stream and durable is one of the contracts", () => {
  const types = new Set<string>([...EventType.options, "io.herald.webhook.ping.v1", "io.herald.audit.recorded.v1"]);
  const events = named(/\b(io\.herald\.[a-z_]+\.[a-z_]+\.v\d)\b/g);
  expect(events.length).toBeGreaterThan(10);
  expect(unknown(events, (name) => types.has(name))).toEqual([]);
  const found = named(/`(PUSH_[A-Z_]+)`/g);
  expect(found.length).toBeGreaterThan(10);
  expect(unknown(found, (name) => name in streams)).toEqual([]);
  const consumers = named(/`((?:registry|dispatch|analytics)-[a-z-]+)`/g);
  expect(consumers.length).toBeGreaterThan(5);
  expect(unknown(consumers, (name) => name in durables || code.includes(`"${name}"`))).toEqual([]);
});

test("every error beside its status is one that the API answers", () => {
  const found = named(/\b[45]\d\d `([a-z]+(?:-[a-z]+)+)`/g);
  expect(found.length).toBeGreaterThan(3);
  expect(unknown(found, (name) => name in errors)).toEqual([]);
});

test("every request is a route of the API", () => {
  const { paths } = JSON.parse(read("docs/reference/openapi.json")) as {
    paths: Record<string, Record<string, unknown>>;
  };
  /** A setting of each provider has a path of its own. */
  const shape = (path: string) =>
    path.replace(/\/providers\/(apns|fcm|webpush)/, "/providers/{}").replaceAll(/\{[^}]*\}|<[^>]*>/g, "{}");
  const routes = Object.entries(paths).flatMap(([path, methods]) =>
    Object.keys(methods).map((method) => `${method.toUpperCase()} ${shape(path)}`),
  );
  const ends = (asked: string) => {
    const [method = "", path = ""] = asked.split(" ");
    // A page writes the path with or without /api/v1 or /admin/v1.
    return routes.some(
      (route) => route === asked || route === `${method} /api/v1${path}` || route === `${method} /admin/v1${path}`,
    );
  };
  const found = named(/`((?:GET|POST|PUT|PATCH|DELETE) \/[^`\s?]*)[^`]*`/g)
    .map(({ page, name }) => ({ page, name: shape(name) }))
    // The control server of the simulators, and what every service has beside the API.
    .filter(({ page }) => page !== "packages/simulators/README.md" && !page.includes("/move-from-"));
  expect(found.length).toBeGreaterThan(20);
  expect(unknown(found, (name) => ends(name) || /^GET \/(docs|livez|readyz|metrics|console)/.test(name))).toEqual([]);
});

test("every command of herald has its flags", () => {
  const terminal = { width: 80, hasColors: false, paint: (_: string, text: string) => text };
  const program = createProgram(terminal as unknown as Parameters<typeof createProgram>[0], async () => {});
  const problems: string[] = [];
  const found = named(/(?:^|`|npx |[$(] ?)herald ((?:[a-z][\w-]*)(?: [^`\n]*)?)/gm);
  expect(found.length).toBeGreaterThan(60);
  for (const { page, name } of found) {
    const words = name.split(/\s+/);
    let command: typeof program | undefined = program;
    for (const word of words) {
      const next: typeof program | undefined = command.commands.find((one) => one.name() === word);
      if (next === undefined) break;
      command = next;
    }
    // A sentence that begins with Herald's name is no command.
    if (command === program) continue;
    const known = new Set([...command.options, ...program.options].flatMap(({ long }) => long ?? []));
    // Of the first command of a line.
    const [own = ""] = name.split(/[|;&)]/);
    for (const [, flag = ""] of own.replaceAll(/"[^"]*"|'[^']*'/g, "").matchAll(/(?:^|\s)(--[a-z-]+)/g))
      if (!known.has(flag) && flag !== "--help" && flag !== "--version")
        problems.push(`${page}: herald ${command.name()} ${flag}`);
  }
  expect(problems).toEqual([]);
});

test("the glossary has every scope, role and status", () => {
  const glossary = read("docs/reference/glossary.md");
  const row = (term: string) => glossary.split("\n").find((line) => line.startsWith(`- **${term}**:`)) ?? "";
  for (const scope of Scope.options) expect(row("scope")).toContain(`\`${scope}\``);
  for (const role of OperatorRole.options) expect(row("operator")).toContain(`\`${role}\``);
  expect(NotificationStatus.options).toContain("paused");
});
