import { parseArgs } from "node:util";
import type { Row } from "./row.ts";

type Described = { readonly type: "string" | "boolean"; readonly default: string | boolean; readonly about: string };

const described = {
  only: { type: "string", default: "", about: "rows, with commas between them; absent: all" },
  runs: { type: "string", default: "3", about: "how often each figure is measured" },
  singles: { type: "string", default: "5000", about: "single notifications in one run" },
  devices: { type: "string", default: "10000,100000", about: "audiences of broadcasts" },
  largest: { type: "string", default: "1000000", about: "the largest audience, sent to once" },
  opens: { type: "string", default: "50000", about: "opens in one run, true or forged" },
  "opens-stored": { type: "string", default: "10000,100000", about: "opens that are stored, by project" },
  listed: { type: "string", default: "1000,100000", about: "devices that are listed, by project" },
  write: { type: "boolean", default: false, about: "writes docs/reference/performance.md and its plot" },
  profile: {
    type: "boolean",
    default: false,
    about: "keeps V8 CPU profiles of what is measured, and prints where the time went; figures are slower with it",
  },
  help: { type: "boolean", default: false, about: "prints this" },
} as const satisfies Readonly<Record<string, Described>>;

const nameWidth = 18;
const column = (name: string, about: string): string => `  ${name.padEnd(nameWidth)} ${about}`;

/** The text of `--help`. */
export const help = (rows: readonly Row[]): string =>
  [
    "npm run bench -- [options]",
    "",
    "Options:",
    ...Object.entries<Described>(described).map(([name, { type, default: value, about }]) =>
      column(type === "boolean" ? `--${name}` : `--${name} …`, value ? `${about} (${value})` : about),
    ),
    "",
    "Rows, in the order in which they are measured:",
    ...rows.map(({ name, about }) => column(name, about)),
    "",
    "HERALD_BENCH_PEER names a command that runs another sender against a fake provider of its own and prints lines such as",
    "`singles: 7512 / 7608 / 7690 a second, 120 µs of gorush's CPU each`, also of `broadcast` and `batches of 100`.",
  ].join("\n");

export type Options = {
  readonly rows: readonly Row[];
  readonly runs: number;
  readonly singles: number;
  readonly devices: readonly number[];
  readonly largest: number;
  readonly opens: number;
  readonly opensStored: readonly number[];
  readonly listed: readonly number[];
  readonly write: boolean;
  readonly profile: boolean;
  readonly help: boolean;
};

const numbers = (name: string, text: string): readonly number[] => {
  const parts = text.split(",");
  const wrong = parts.find((part) => !/^[1-9]\d*$/.test(part));
  if (wrong !== undefined) throw new Error(`--${name}: ${JSON.stringify(wrong)} is not a whole number above 0`);
  return parts.map(Number);
};

const number = (name: string, text: string): number => {
  const [first, ...more] = numbers(name, text);
  if (first === undefined || more.length > 0) throw new Error(`--${name}: takes one number, not ${text}`);
  return first;
};

/** Parses the command line. Throws an error with a message for users. Without the command of a peer, the peer's row does not run. */
export const readOptions = (args: readonly string[], all: readonly Row[], hasPeer: boolean): Options => {
  const { values } = parseArgs({ args: [...args], options: described });
  const names = all.map(({ name }) => name);
  const wanted = values.only === "" ? names.filter((name) => name !== "peer" || hasPeer) : values.only.split(",");
  const unknown = wanted.filter((name) => !names.includes(name));
  if (unknown.length > 0) throw new Error(`--only: there is no ${unknown.join(", ")}; there are ${names.join(", ")}`);
  if (values.write && values.profile)
    throw new Error("--profile: slows what it measures; write figures of a run without it");
  return {
    rows: all.filter(({ name }) => wanted.includes(name)),
    runs: number("runs", values.runs),
    singles: number("singles", values.singles),
    devices: numbers("devices", values.devices),
    largest: number("largest", values.largest),
    opens: number("opens", values.opens),
    opensStored: numbers("opens-stored", values["opens-stored"]),
    listed: numbers("listed", values.listed),
    write: values.write,
    profile: values.profile,
    help: values.help,
  };
};
