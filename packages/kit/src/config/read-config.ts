import { readFileSync } from "node:fs";
import type { z } from "zod";
import { nearestName } from "../nearest-name.ts";
import { bareSchemas } from "../schema-at.ts";
import { type VariableInfo, variableInfo } from "./variables.ts";

/** The configuration is invalid. The message lists every problem, formatted for a terminal. */
export class ConfigError extends Error {
  readonly problems: readonly string[];

  constructor(problems: readonly string[]) {
    const count = problems.length === 1 ? "1 problem" : `${problems.length} problems`;
    super(`The configuration has ${count}:\n${problems.map((problem) => `  ${problem}`).join("\n")}`);
    this.name = "ConfigError";
    this.problems = problems;
  }
}

type Environment = Readonly<Record<string, string | undefined>>;
type Shape = Readonly<Record<string, z.core.$ZodType>>;

/** The variables of a schema, also if it is refined or transformed. */
const shapeOf = (schema: z.core.$ZodType): Shape =>
  Object.assign({}, ...bareSchemas(schema).map(({ _zod }) => (_zod.def as { shape?: Shape }).shape));

/** Other services share these areas, so an unknown name there is only a typo if it is close to a known one. */
const sharedAreas = new Set(["HERALD_NATS_", "HERALD_MONGO_", "HERALD_LOG_"]);
const areaOf = (name: string): string | undefined => /^HERALD_[A-Z0-9]+_/.exec(name)?.[0];

/** The maximum number of slips in a typo. */
const slips = 2;

/** The variable that names a file with the secret, as Docker and Kubernetes mount them. */
export const fileVariable = (name: string): string => `${name}_FILE`;

const readSecretFile = (file: string): { text: string } | { problem: string } => {
  try {
    // Editors and `echo` end a file with a line break, which is not part of the secret.
    return { text: readFileSync(file, "utf8").replace(/\r?\n$/, "") };
  } catch (error) {
    return { problem: `cannot be read: ${error instanceof Error ? error.message : String(error)}` };
  }
};

/** By convention these are in lower case, too. */
const alsoLowerCase = new Set(["HTTPS_PROXY", "NO_PROXY"]);

/** The value of each variable, secrets also from the file that `…_FILE` names. */
const valuesOf = (shape: Shape, env: Environment) => {
  const values: Record<string, string | undefined> = {};
  const problems: string[] = [];
  for (const [name, schema] of Object.entries(shape)) {
    values[name] = env[name] || (alsoLowerCase.has(name) && env[name.toLowerCase()]) || undefined;
    const file = env[fileVariable(name)];
    if (!file || !variableInfo(schema)?.secret) continue;
    if (values[name] !== undefined) {
      problems.push(`${fileVariable(name)}: is set beside ${name}; set one of the two`);
      continue;
    }
    const read = readSecretFile(file);
    if ("problem" in read) problems.push(`${fileVariable(name)}: ${read.problem}`);
    else values[name] = read.text === "" ? undefined : read.text;
  }
  return { values, problems };
};

const typos = (shape: Shape, env: Environment): string[] => {
  const known = Object.entries(shape).flatMap(([name, schema]) =>
    variableInfo(schema)?.secret ? [name, fileVariable(name)] : [name],
  );
  return Object.keys(env)
    .filter((name) => name.startsWith("HERALD_") && !known.includes(name))
    .flatMap((name) => {
      const unknown = `${name}: is not a variable of this service`;
      const near = nearestName(name, known, slips);
      if (near !== undefined) return [`${unknown}; probably ${near} is meant`];
      const area = areaOf(name);
      if (area === undefined || sharedAreas.has(area)) return [];
      const ofArea = known.filter((candidate) => areaOf(candidate) === area);
      if (ofArea.length === 0) return [];
      // The area is correct, so only the rest of the name may differ.
      const guess = nearestName(name, ofArea, Math.max(1, Math.floor((name.length - area.length) / 3)));
      return [`${unknown}; ${guess === undefined ? "take it away" : `is ${guess} meant?`}`];
    })
    .sort();
};

const shown = (value: string, info: VariableInfo | undefined): string =>
  info === undefined || info.secret ? "" : ` (it is ${JSON.stringify(value.slice(0, 60))})`;

const accepted = (info: VariableInfo | undefined): string =>
  info === undefined ? "" : `; accepted: ${info.accepts}; for example ${info.example}`;

const describe = (issue: z.core.$ZodIssue, shape: Shape, values: Environment): string => {
  const name = issue.path.map(String).join(".");
  if (name === "") return issue.message;
  const schema = shape[name];
  const info = schema && variableInfo(schema);
  const value = values[name];
  if (value === undefined && issue.code === "invalid_type") return `${name}: is not set${accepted(info)}`;
  return `${name}: ${issue.message}${value === undefined ? "" : shown(value, info)}${accepted(info)}`;
};

/** A secret whose file is unreadable is also missing; reports only the first problem. */
const notOf = (unread: readonly string[]) => (issue: z.core.$ZodIssue) =>
  !unread.some((problem) => problem.startsWith(`${fileVariable(issue.path.map(String).join("."))}:`));

/**
 * Parses environment variables with a zod object whose keys are their names. An empty variable counts as unset, because compose files pass
 * unset variables so. A secret may also come from the file that `<name>_FILE` names.
 * @throws ConfigError with every problem at once, never with values of secrets.
 */
export const readConfig = <Schema extends z.ZodType>(schema: Schema, env: Environment): z.output<Schema> => {
  const shape = shapeOf(schema);
  const { values, problems: unread } = valuesOf(shape, env);
  const result = schema.safeParse(values);
  const problems = [
    ...unread,
    ...(result.success ? [] : result.error.issues.filter(notOf(unread)).map((issue) => describe(issue, shape, values))),
    ...typos(shape, env),
  ];
  if (problems.length > 0 || !result.success) throw new ConfigError(problems);
  return result.data;
};
