import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileVariable, variableInfo } from "@herald/kit";
import type { z } from "zod";

/** A part of Herald that reads variables, with their schema and the source file that documents them. */
export type Part = { readonly name: string; readonly schema: z.ZodObject; readonly source: string };

const root = join(import.meta.dirname, "../../..");
const sharedSource = "packages/kit/src/config/shared-blocks.ts";

const oneLine = (comment: string): string =>
  comment
    .split("\n")
    .map((line) => line.replace(/^\s*\*? ?/, "").trim())
    .filter(Boolean)
    .join(" ");

/** The doc comment of each variable in a source of schemas. */
const meaningsIn = (source: string): ReadonlyMap<string, string> => {
  const text = readFileSync(join(root, source), "utf8");
  const found = text.matchAll(/\/\*\*((?:(?!\*\/)[\s\S])*)\*\/\s*(HERALD_\w+|OTEL_\w+):/g);
  return new Map([...found].map(([, comment = "", name = ""]) => [name, oneLine(comment)]));
};

/** These names are derived from the service's name, so no source has a comment for them. */
const listening = (name: string): string | undefined => {
  if (name.endsWith("_METRICS_PORT")) return "Port of `/metrics`, for Prometheus. Do not expose it to the internet.";
  if (name.endsWith("_HOST"))
    return "Address to listen on. The default is reachable only from this machine; containers set `0.0.0.0`.";
  return /^HERALD_[A-Z]+_PORT$/.test(name) ? "Port of the HTTP interface, `/livez` and `/readyz`." : undefined;
};

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

type Variable = { name: string; parts: string[]; default: string; accepts: string; meaning: string; secret: boolean };

const variablesOf = (parts: readonly Part[]): Variable[] => {
  const all = new Map<string, Variable>();
  for (const { name: part, schema, source } of parts) {
    const meanings = new Map([...meaningsIn(sharedSource), ...meaningsIn(source)]);
    for (const [name, type] of Object.entries(schema.shape)) {
      const known = all.get(name);
      if (known) {
        known.parts.push(part);
        continue;
      }
      const info = variableInfo(type);
      const meaning = meanings.get(name) ?? listening(name);
      if (info === undefined || meaning === undefined) throw new Error(`${name} of ${part} has no doc comment`);
      const unset = type.safeParse(undefined);
      const standard =
        unset.success && unset.data !== undefined ? `\`${written(unset.data, info.accepts)}\`` : undefined;
      all.set(name, {
        name,
        parts: [part],
        default: standard ?? (unset.success ? "not set" : "**required**"),
        accepts: info.accepts,
        meaning,
        secret: info.secret,
      });
    }
  }
  return [...all.values()];
};

const cell = (text: string): string => text.replaceAll("|", "\\|").replaceAll("<", "&lt;");

const row = ({ name, parts, secret, ...rest }: Variable, all: number): string => {
  const readers = parts.length === all ? "all" : parts.join(", ");
  const accepts = `${rest.accepts[0]?.toUpperCase()}${rest.accepts.slice(1)}`;
  const names = secret ? `\`${name}\`<br>\`${fileVariable(name)}\`` : `\`${name}\``;
  return `| ${names} | ${rest.default} | ${cell(`${rest.meaning} ${accepts}.`)} | ${readers} |`;
};

const heading = ["| variable | default | meaning, and what is accepted | read by |", "| --- | --- | --- | --- |"];

/** docs/reference/configuration.md: every environment variable of every part. */
export const configurationPage = (parts: readonly Part[]): string => {
  const variables = variablesOf(parts);
  const table = (rows: readonly Variable[]) => [...heading, ...rows.map((one) => row(one, parts.length)), ""];
  const shared = variables.filter((one) => one.parts.length > 1);
  return [
    "# Configuration",
    "",
    "Written by `npm run docs` from the schemas in `services/*/src/config.ts` and `packages/kit/src/config`; a test compares them.",
    "",
    "Environment variables are Herald's only configuration. If they are invalid, a service lists every problem and exits with code 78. An",
    "empty variable counts as not set. A misspelled `HERALD_…` variable is a problem too. A service ignores the variables of the others.",
    "",
    "A secret can also come from a file, such as one that Docker or Kubernetes mounts: set `<name>_FILE` to its path. Herald removes a line",
    "break at the end of the file. Set only one of the two variables.",
    "",
    "With compose, put the variables into `.env`, which every service reads. [docker-compose.yml](../../docker-compose.yml) sets addresses",
    "and ports inside the containers, `HERALD_NATS_URL` and `HERALD_MONGO_URL`.",
    "",
    "## Shared by several parts",
    "",
    ...table(shared),
    ...parts.flatMap(({ name }) => {
      const own = variables.filter((one) => one.parts.length === 1 && one.parts[0] === name);
      return own.length === 0 ? [] : [`## ${name[0]?.toUpperCase()}${name.slice(1)}`, "", ...table(own)];
    }),
  ].join("\n");
};
