import { fileVariable, variableInfo } from "@herald/kit";
import { z } from "zod";
import { configSource, type DeployedPart, parts, read, schemas } from "./deployed-parts.ts";

const sharedSource = "packages/kit/src/config/shared-blocks.ts";

const oneLine = (comment: string): string =>
  comment
    .split("\n")
    .map((line) => line.replace(/^\s*\*? ?/, "").trim())
    .filter(Boolean)
    .join(" ");

/** The doc comment of each variable in a source of schemas. */
const meaningsIn = (source: string): ReadonlyMap<string, string> => {
  const found = read(source).matchAll(/\/\*\*((?:(?!\*\/)[\s\S])*)\*\/\s*([A-Z]+_\w+):/g);
  return new Map([...found].map(([, comment = "", name = ""]) => [name, oneLine(comment)]));
};

/** The doc comment of each variable that a part may read. */
export const meaningsOf = (part: DeployedPart): ReadonlyMap<string, string> =>
  new Map([...meaningsIn(sharedSource), ...meaningsIn(configSource(part))]);

const units: Readonly<Record<string, readonly (readonly [string, number])[]>> = {
  "a duration": [
    ["d", 86_400_000],
    ["h", 3_600_000],
    ["m", 60_000],
    ["s", 1_000],
  ],
  "a size": [
    ["GiB", 2 ** 30],
    ["MiB", 2 ** 20],
    ["KiB", 2 ** 10],
  ],
};

/** The value in its largest whole unit, such as `90d` for its milliseconds. */
const written = (value: unknown, accepts: string): string => {
  const [, known = []] = Object.entries(units).find(([kind]) => accepts.startsWith(kind)) ?? [];
  const [unit, size] = known.find(([, size]) => Number(value) >= size && Number(value) % size === 0) ?? ["", 1];
  return unit === "" ? String(value) : `${Number(value) / size}${unit}`;
};

type Variable = {
  name: string;
  /** The default of each part that reads it. */
  defaults: Map<string, string>;
  accepts: string;
  meaning: string;
  secret: boolean;
};

const defaultOf = (type: z.core.$ZodType, accepts: string): string => {
  const unset = z.safeParse(type, undefined);
  if (!unset.success) return "**required**";
  return unset.data === undefined ? "not set" : `\`${written(unset.data, accepts)}\``;
};

const variablesOf = (): Variable[] => {
  const all = new Map<string, Variable>();
  for (const part of parts) {
    const meanings = meaningsOf(part);
    for (const [name, type] of Object.entries(schemas[part].shape)) {
      const info = variableInfo(type);
      const meaning = meanings.get(name);
      if (info === undefined || meaning === undefined) throw new Error(`${name} of ${part} has no doc comment`);
      const { accepts, secret } = info;
      const variable = all.get(name) ?? { name, defaults: new Map(), accepts, meaning, secret };
      variable.defaults.set(part, defaultOf(type, accepts));
      all.set(name, variable);
    }
  }
  return [...all.values()];
};

const cell = (text: string): string => text.replaceAll("<", "&lt;");

/** One heading for each variable, so that a link leads to it and no line is wider than a phone. */
const entry = ({ name, defaults, secret, ...rest }: Variable, all: number): string => {
  const readers = defaults.size === all ? "every part" : [...defaults.keys()].join(", ");
  const read = defaults.size === 1 ? "" : ` Read by ${readers}.`;
  const [same, ...others] = new Set(defaults.values());
  const standard = others.length === 0 ? same : [...defaults].map(([part, own]) => `${part} ${own}`).join(", ");
  const accepts = `${rest.accepts[0]?.toUpperCase()}${rest.accepts.slice(1)}`;
  return [
    `### ${name}`,
    "",
    cell(/^(Any t|T)ext$/.test(accepts) ? rest.meaning : `${rest.meaning} ${accepts}.`),
    "",
    `Default: ${standard}.${read}${secret ? ` Or \`${fileVariable(name)}\`.` : ""}`,
    "",
  ].join("\n");
};

/** docs/reference/configuration.md: every environment variable of every part. */
export const configurationPage = (): string => {
  const variables = variablesOf();
  const entries = (of: readonly Variable[]) => of.map((one) => entry(one, parts.length));
  const shared = variables.filter((one) => one.defaults.size > 1);
  return [
    "# Configuration",
    "",
    "Every environment variable of Herald; there is no other configuration. Written by `npm run docs` from the schemas in",
    "`services/*/src/config.ts` and `packages/kit/src/config`; a test compares them.",
    "",
    "A service that finds an invalid or misspelled `HERALD_…` variable lists every problem and exits with code 78. An empty variable counts as",
    "not set. A service ignores the variables of the others.",
    "",
    "A secret can also come from a file: set only `<name>_FILE`, to its path. Herald removes a line break at its end. With compose, put the",
    "variables into `.env`; [docker-compose.yml](../../docker-compose.yml) sets addresses and ports inside the containers.",
    "",
    "## Shared by several parts",
    "",
    ...entries(shared),
    ...parts.flatMap((name) => {
      const own = variables.filter((one) => one.defaults.size === 1 && one.defaults.has(name));
      return own.length === 0 ? [] : [`## ${name[0]?.toUpperCase()}${name.slice(1)}`, "", ...entries(own)];
    }),
  ].join("\n");
};
