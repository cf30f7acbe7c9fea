import { basename, dirname, resolve } from "node:path";
import type { Herald, Project } from "@herald/client";
import type { Command } from "commander";
import { type ApplyStep, type ApplyTarget, diff, type ProjectState } from "../apply/diff.ts";
import { type ProjectFile, parseProjectFile, schema } from "../apply/project-file.ts";
import { findProject, readProjectState } from "../apply/read-project-state.ts";
import { readSources, readWritten, writeSecret } from "../apply/sources.ts";
import type { Context } from "../context.ts";
import { type Add, option, yesOption } from "../define.ts";
import { exitCodes, UsageError } from "../failures.ts";
import { readText } from "../read-text.ts";
import { plain } from "../terminal/text.ts";

type Options = {
  readonly file?: string;
  readonly dryRun?: boolean;
  readonly check?: boolean;
  readonly prune?: boolean;
  readonly yes?: boolean;
  readonly schema?: boolean;
};

const nothing: Omit<ProjectState, "project" | "written"> = {
  limits: [],
  kinds: [],
  providers: [],
  tokens: [],
  webhooks: [],
};

/** The file with its provider settings as Herald takes them, and its folder. Throws a UsageError that names every problem. */
const readProjectFile = async (path: string, { env }: Context) => {
  const [name, folder] = [basename(path), dirname(resolve(path))];
  const { file, refuse } = parseProjectFile(await readText(path), name);
  const read = await Promise.all(
    Object.entries(file.providers ?? {}).map(async ([provider, given]) => {
      const path = ["providers", provider];
      const { settings, problems } = await readSources(given, path, folder, env);
      return {
        provider,
        problems,
        settings: provider === "apns" ? { environment: "production", ...settings } : settings,
      };
    }),
  );
  refuse(read.flatMap(({ problems }) => problems));
  const providers = Object.fromEntries(read.map(({ provider, settings }) => [provider, settings]));
  return { file: { ...file, ...(file.providers && { providers }) } as ProjectFile, folder, name, refuse };
};

const colors = { "+": "green", "~": "yellow", "-": "red" } as const;
const actions = { "+": "create", "~": "change", "-": "remove" } as const;

const line = ({ sign, what, detail }: ApplyStep, { terminal }: Context): string =>
  `  ${terminal.paint(colors[sign], sign)} ${plain(what)}${detail === "" ? "" : `: ${plain(detail)}`}`;

const inWords = (count: number, what = "change"): string => `${count} ${what}${count === 1 ? "" : "s"}`;

const asJson = ({ sign, what, detail }: ApplyStep) => ({ action: actions[sign], what, ...(detail && { detail }) });

/** What the changes of a run are made with. A new project's id is known only after its first change. */
const createTarget = (
  context: Context,
  heraldOf: (id: string) => Herald,
  known: Project | undefined,
  folder: string,
) => {
  let project = known;
  const id = (): string => {
    if (project === undefined) throw new Error("the project is created first");
    return project.id;
  };
  const target: ApplyTarget = {
    admin: context.admin(),
    herald: () => heraldOf(id()),
    id,
    created: (created) => {
      project = created;
    },
    write: (name, make) =>
      writeSecret(resolve(folder, name), async () => {
        const secret = await make();
        if (secret !== undefined) return secret;
        throw new UsageError("The answer with the secret got lost.", "Run the command again: it makes another secret.");
      }),
  };
  return { target, project: () => project };
};

/** Makes the changes one after the other. If one fails, says which were made and that the command goes on. */
const makeChanges = async (
  changes: readonly ApplyStep[],
  target: ApplyTarget,
  { terminal, onStop }: Context,
): Promise<void> => {
  for (const [made, change] of changes.entries()) {
    const next = `${change.sign} ${plain(change.what)}`;
    onStop(
      `${made} of ${inWords(changes.length)} made; stopped at \`${next}\`. Run the command again: it goes on from there.`,
    );
    terminal.progress(`${next}…`);
    await change.make(target);
  }
  terminal.progress();
};

const apply = async (context: Context, { file: path, dryRun, check, prune, yes }: Options): Promise<number> => {
  if (path === undefined)
    throw new UsageError("This needs a file: -f shop.yaml.", "`herald apply --schema` prints what it may contain.");
  const { file, folder, name, refuse } = await readProjectFile(path, context);
  const { terminal, json } = context;
  const [admin, heraldOf] = [context.admin(), context.heraldOf];
  const found = await findProject(admin, file.project.key);
  const state = found === undefined ? nothing : await readProjectState(admin, heraldOf, found, file);
  const { changes, removals, problems } = diff(file, {
    project: found,
    ...state,
    written: await readWritten(file, folder),
  });
  refuse(problems);
  const all = prune ? [...changes, ...removals] : changes;
  const kept = prune ? [] : removals;
  const { target, project } = createTarget(context, heraldOf, found, folder);

  if (!json) {
    terminal.print(
      `Project ${file.project.key}${found === undefined ? "" : ` (${found.id})`} at ${context.settings.url}`,
    );
    for (const change of all) terminal.print(line(change, context));
    if (kept.length > 0)
      terminal.print(
        `Not in the file, and kept: ${kept.map(({ what }) => plain(what)).join(", ")}. --prune removes them.`,
      );
  }
  const only = check || dryRun;
  if (!only && all.length > 0) {
    if (prune && removals.length > 0)
      await context.confirm(`Remove ${inWords(removals.length, "thing")} that ${name} does not name?`, yes);
    await makeChanges(all, target, context);
  }
  const result = {
    project: { key: file.project.key, id: project()?.id },
    changes: all.map(asJson),
    kept: kept.map(asJson),
    made: !only,
  };
  await context.result(result, () => {
    if (all.length === 0) return "No difference.";
    if (only) return `${inWords(all.length)} to make. Nothing was changed.`;
    return `Made ${inWords(all.length)}.${found === undefined ? ` The project is ${project()?.id}.` : ""}`;
  });
  return check && all.length > 0 ? exitCodes.failed : exitCodes.ok;
};

export const addApply = (program: Command, add: Add) => {
  add<Options>(program, {
    usage: "apply",
    does: "Bring a project to what a file says, and create it if it does not exist (admin token)",
    options: [
      option("-f, --file <file>", "the project file, YAML"),
      option("--dry-run", "show what would change"),
      option("--check", "like --dry-run, and exit with 1 if there is a difference"),
      option("--prune", "also remove what the file's sections do not name, last"),
      yesOption,
      option("--schema", "print the JSON Schema of the file"),
    ],
    examples: [
      ["apply -f shop.yaml --dry-run", "show the difference first"],
      ["apply -f shop.yaml", "make it; a run that was interrupted goes on"],
      ["apply -f shop.yaml --check", "in a pipeline: has someone changed the project by hand?"],
    ],
    run: async (context, _, options) => {
      if (!options.schema) return apply(context, options);
      context.terminal.print(JSON.stringify(schema, null, 2));
      return exitCodes.ok;
    },
  });
};
