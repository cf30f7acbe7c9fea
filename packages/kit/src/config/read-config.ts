import { readFileSync } from "node:fs";
import type { z } from "zod";
import { nearestName } from "../nearest-name.ts";
import { type VariableInfo, variableInfo } from "./variables.ts";

/** The configuration cannot be used. The message lists every problem and is meant for a terminal. */
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

/** The variables of a schema, also of one that is refined or turned into something else. */
const shapeOf = (schema: z.core.$ZodType): Shape => {
  const def = schema._zod.def as { shape?: Shape; in?: z.core.$ZodType; innerType?: z.core.$ZodType };
  const inner = def.in ?? def.innerType;
  return def.shape ?? (inner ? shapeOf(inner) : {});
};

/** Other services share these areas, so an unknown name there is only a typo when it almost is a known one. */
const sharedAreas = new Set(["HERALD_NATS_", "HERALD_MONGO_", "HERALD_LOG_"]);
const areaOf = (name: string): string | undefined => /^HERALD_[A-Z0-9]+_/.exec(name)?.[0];

/** As many slips as a typo has. */
const slips = 2;

/** The area is right, so only what comes after it is compared. */
const nearestInArea = (name: string, known: readonly string[]): string | undefined => {
  const area = areaOf(name) ?? "";
  const rests = known
    .filter((candidate) => candidate.startsWith(area))
    .map((candidate) => candidate.slice(area.length));
  const near = nearestName(name.slice(area.length), rests);
  return near === undefined ? undefined : area + near;
};

/** Names the file that holds a secret, as Docker and Kubernetes mount them, instead of the secret itself. */
export const fileVariable = (name: string): string => `${name}_FILE`;

const readSecretFile = (file: string): { text: string } | { problem: string } => {
  try {
    // Editors and `echo` end a file with a line break, which is no part of the secret.
    return { text: readFileSync(file, "utf8").replace(/\r?\n$/, "") };
  } catch (error) {
    return { problem: `cannot be read: ${error instanceof Error ? error.message : String(error)}` };
  }
};

/** The value of each variable, secrets also from the file that `…_FILE` names. */
const valuesOf = (shape: Shape, env: Environment) => {
  const values: Record<string, string | undefined> = {};
  const problems: string[] = [];
  for (const [name, schema] of Object.entries(shape)) {
    values[name] = env[name] === "" ? undefined : env[name];
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
  const own = new Set(known.map(areaOf).filter((area) => area !== undefined && !sharedAreas.has(area)));
  return Object.keys(env)
    .filter((name) => name.startsWith("HERALD_") && !known.includes(name))
    .flatMap((name) => {
      const near = nearestName(name, known, slips);
      if (near !== undefined) return [`${name}: is not a variable of this service; probably ${near} is meant`];
      if (!own.has(areaOf(name))) return [];
      const guess = nearestInArea(name, known);
      return [
        `${name}: is not a variable of this service${guess === undefined ? "; take it away" : `; is ${guess} meant?`}`,
      ];
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

/** A secret whose file cannot be read is also not set, which is no second problem. */
const notOf = (unread: readonly string[]) => (issue: z.core.$ZodIssue) =>
  !unread.some((problem) => problem.startsWith(`${fileVariable(issue.path.map(String).join("."))}:`));

/**
 * Parses environment variables with a zod object that is keyed by their names. An empty variable counts as unset, as
 * compose files pass them. A secret may also come from the file that `<name>_FILE` names.
 * @throws ConfigError with every problem at once; values of secrets are never in it.
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
