import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { parse } from "yaml";

/** What a workflow on GitHub may do: who can publish or read a secret runs nothing of others, and nothing that it has built itself. */

type Step = {
  name?: string;
  uses?: string;
  run?: string;
  with?: Record<string, unknown>;
  env?: Record<string, string>;
};
type Job = {
  permissions?: Record<string, string>;
  environment?: unknown;
  env?: Record<string, string>;
  steps: Step[];
};
type Workflow = { permissions?: Record<string, string>; env?: Record<string, string>; jobs: Record<string, Job> };

const folder = join(import.meta.dirname, "../.github/workflows");
const workflows = readdirSync(folder).map((file) => {
  const workflow: Workflow = parse(readFileSync(join(folder, file), "utf8"));
  return { file, ...workflow };
});
const jobs = workflows.flatMap(({ file, jobs: all }) =>
  Object.entries(all).map(([name, job]) => ({ name: `${file} ${name}`, job })),
);
const writes = ({ permissions = {} }: Pick<Job, "permissions">) => Object.values(permissions).includes("write");
const commandsOf = ({ steps }: Job) => steps.flatMap(({ run = "" }) => run.replaceAll(/\\\n\s*/g, "").split("\n"));
const trusted = jobs.filter(({ job }) => writes(job) || /\$\{\{[^}]*\bsecrets\b/.test(JSON.stringify(job)));

/** Runs install scripts, the tree's own code, or what it depends on. */
const runsOthers = [
  /\b(npm|pnpm|yarn) (ci|i|install|exec|run|test|start|pack)\b/,
  /\bnpx\b|\bnode\b(?!-)|\bbash \.|\btools\/|\binfra\//,
  /\bdocker (buildx )?(build|run|compose)\b/,
  /\bmvn\b.* (compile|test|package|verify|install|deploy)(?= |$)/,
  /\bgo (run|generate|test)\b|\bpip\b|\bcurl\b.*\|/,
];
/** npm itself, in one version and without its scripts. */
const npmItself = /^npm install --global --ignore-scripts npm@\d+\.\d+\.\d+(?: #.*)?$/;

test("there are jobs that publish, and each is in an environment that can be protected", () => {
  expect(trusted.length).toBeGreaterThan(2);
  expect(trusted.filter(({ job }) => job.environment === undefined).map(({ name }) => name)).toEqual([]);
});

test("a job that may publish or reads a secret runs no install script and no build", () => {
  const found = trusted.flatMap(({ name, job }) =>
    commandsOf(job)
      .filter((command) => !npmItself.test(command.trim()) && runsOthers.some((pattern) => pattern.test(command)))
      .map((command) => `${name}: ${command.trim()}`),
  );
  expect(found).toEqual([]);
});

test("neither what is published nor what publishes it comes from a cache, which every job may write", () => {
  const builds = jobs.filter(({ name }) => name.includes(" build-"));
  expect(builds.length).toBeGreaterThan(0);
  const cached = [...trusted, ...builds].filter(({ job }) =>
    job.steps.some(
      ({ uses = "", with: given = {} }) =>
        uses.startsWith("actions/cache") ||
        (uses.startsWith("actions/setup-node") && given.cache !== undefined) ||
        (uses.startsWith("actions/setup-go") && given.cache !== false),
    ),
  );
  expect(cached.map(({ name }) => name)).toEqual([]);
});

test("no job but those may write, and no workflow gives all of its jobs a right or a secret", () => {
  for (const { file, permissions, env } of workflows) {
    expect(permissions, file).toEqual({ contents: "read" });
    expect(JSON.stringify(env ?? {}), file).not.toMatch(/secrets|token/);
  }
});

test("no checkout leaves the job's token in the tree", () => {
  const checkouts = jobs.flatMap(({ name, job }) =>
    job.steps.filter(({ uses = "" }) => uses.startsWith("actions/checkout@")).map((step) => ({ name, step })),
  );
  expect(checkouts.length).toBeGreaterThan(5);
  expect(checkouts.filter(({ step }) => step.with?.["persist-credentials"] !== false).map(({ name }) => name)).toEqual(
    [],
  );
});

test("what a workflow installs itself runs no script", () => {
  const installs = jobs.flatMap(({ name, job }) =>
    commandsOf(job)
      .filter((command) => /\bnpm (ci|i|install)\b/.test(command) && !command.includes("--ignore-scripts"))
      .map((command) => `${name}: ${command.trim()}`),
  );
  expect(installs).toEqual([]);
});
