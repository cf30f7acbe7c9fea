import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileVariable, variableInfo } from "@herald/kit";
import type { z } from "zod";

/** A part of Herald that reads variables, with the schema and the source that says what they are for. */
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

/** Names are made of the service's, so that they have no comment of their own. */
const listening = (name: string): string | undefined => {
  if (name.endsWith("_METRICS_PORT")) return "Port of `/metrics`, for Prometheus. Keep it inside the network.";
  if (name.endsWith("_HOST"))
    return "Address to listen on. By default reachable from this machine alone; containers set `0.0.0.0`.";
  return /^HERALD_[A-Z]+_PORT$/.test(name)
    ? "Port of the HTTP interface; `/livez` and `/readyz` are on it too."
    : undefined;
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

/** As somebody would write it: `90d` for its milliseconds. */
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
    "Herald reads environment variables alone. A service that cannot use its configuration lists every problem and ends with exit code",
    "78. An empty variable counts as unset. A misspelled `HERALD_…` variable is a problem too; those of other services are ignored.",
    "",
    "A secret can also come from a file: `<name>_FILE` is its path, as Docker and Kubernetes mount secrets. A line break at its end is cut",
    "off. Set one of the two.",
    "",
    "With compose, put them into `.env`: every service gets that file. The addresses and ports inside of the containers, `HERALD_NATS_URL`",
    "and `HERALD_MONGO_URL` are set by [docker-compose.yml](../../docker-compose.yml).",
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
