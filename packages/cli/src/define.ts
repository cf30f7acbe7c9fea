import { type Command, InvalidArgumentError, Option } from "commander";
import type { Context } from "./context.ts";
import { UsageError } from "./failures.ts";

/** Runs a command; a number is its exit code. */
// biome-ignore lint/suspicious/noConfusingVoidType: a command without an exit code of its own returns nothing
type Outcome = number | undefined | void;
type Handle = (context: Context) => Promise<Outcome>;
export type Execute = (command: Command, handle: Handle) => Promise<void>;

type Words = readonly string[];

type Run<Options> = (context: Context, words: Words, options: Options) => Promise<Outcome>;

type Definition<Options> = {
  /** In commander's syntax: `get <id>`. */
  readonly usage: string;
  readonly does: string;
  /** Commands to type, each with its purpose. */
  readonly examples?: readonly (readonly [command: string, why: string])[];
  readonly options?: readonly Option[];
  readonly run: Run<Options>;
};

/** A definition, or the parts of a command without options. */
type Given<Options> = readonly [Definition<Options>] | readonly [usage: string, does: string, run: Run<Options>];

/** Adds a command to a program or one of its groups. */
export type Add = <Options = Record<never, never>>(parent: Command, ...given: Given<Options>) => Command;

const wholeNumber = (text: string): number => {
  if (!/^\d{1,9}$/.test(text)) throw new InvalidArgumentError("It must be a whole number.");
  return Number(text);
};

const share = (text: string): number => {
  if (!/^(0(\.\d+)?|1(\.0+)?)$/.test(text)) throw new InvalidArgumentError("It must be a number from 0 to 1.");
  return Number(text);
};

/** `5%` or `0.05` as 0.05; undefined: neither. */
export const parsePercent = (text: string): number | undefined => {
  const [, digits, isPercent] = /^(\d{1,3}(?:\.\d+)?)(%?)$/.exec(text) ?? [];
  const value = digits === undefined ? Number.NaN : Number(isPercent ? `${digits}e-2` : digits);
  return value <= 1 ? value : undefined;
};

const percent = (text: string): number => {
  const value = parsePercent(text);
  if (value === undefined) throw new InvalidArgumentError("It must be a share such as 5% or 0.05.");
  return value;
};

export const option = (flags: string, description: string): Option => new Option(flags, description);
export const numberOption = (flags: string, description: string): Option =>
  option(flags, description).argParser(wholeNumber);
/** An option with a number from 0 to 1. */
export const shareOption = (flags: string, description: string): Option => option(flags, description).argParser(share);
/** An option with a share such as `5%` or `0.05`. */
export const percentOption = (flags: string, description: string): Option =>
  option(flags, description).argParser(percent);
/** An option that may be repeated. */
export const repeatable = (flags: string, description: string, choices?: readonly string[]): Option => {
  const one = option(flags, description);
  if (choices !== undefined) one.choices(choices);
  return one.argParser((value: string, before: string[] | undefined) => {
    if (choices?.includes(value) === false)
      throw new InvalidArgumentError(`Allowed choices are ${choices.join(", ")}.`);
    return [...(before ?? []), value];
  });
};

export const listOptions = [
  numberOption("--limit <count>", "rows to show (default: 20)"),
  option("--all", "show all rows"),
];

export const createdOptions = [
  option("--created-after <time>", "only rows created at this time or later"),
  option("--created-before <time>", "only rows created before this time"),
];
/** Lists show the newest rows first. */
export const timeOptions = [option("--oldest-first", "show the oldest rows first"), ...createdOptions];
export type TimeChoice = {
  readonly oldestFirst?: boolean;
  readonly createdAfter?: string;
  readonly createdBefore?: string;
};
export const timeFilters = ({ oldestFirst, createdAfter, createdBefore }: TimeChoice) => ({
  sort: oldestFirst ? ("created_at" as const) : ("-created_at" as const),
  createdAfter,
  createdBefore,
});

export const yesOption = option("--yes", "do not ask for confirmation");

/** Parses `name=value`; the value may contain `=`. */
export const parsePairs = (pairs: readonly string[], flag = "--data"): Record<string, string> =>
  Object.fromEntries(
    pairs.map((pair) => {
      const at = pair.indexOf("=");
      if (at < 1) throw new UsageError(`${flag} ${pair}: must be name=value.`);
      return [pair.slice(0, at), pair.slice(at + 1)];
    }),
  );

/** `name=value` as filters of the API write it: `name:value`. */
export const labelFilter = (pair: string): string =>
  Object.entries(parsePairs([pair], "--label"))
    .map((label) => label.join(":"))
    .join();

const helpOf = (examples: Definition<never>["examples"] = []): string =>
  examples.length === 0
    ? ""
    : `\nExamples:\n${examples.map(([command, why]) => `  ${why}\n    $ herald ${command}`).join("\n")}`;

/** Returns the function that adds commands. */
export const createAdd =
  (execute: Execute): Add =>
  <Options>(parent: Command, ...given: Given<Options>) => {
    const definition = given.length === 1 ? given[0] : { usage: given[0], does: given[1], run: given[2] };
    const { usage, does, examples, options = [], run }: Definition<Options> = definition;
    const command = parent.command(usage).description(does).addHelpText("after", helpOf(examples));
    for (const one of options) command.addOption(one);
    return command.action(async (...given: unknown[]) => {
      // Commander passes each argument, repeatable arguments as a list, then the options and the command.
      const words = given
        .slice(0, -2)
        .flat()
        .filter((word) => word !== undefined) as string[];
      await execute(command, (context) => run(context, words, command.opts() as Options));
    });
  };

type Deletion = {
  readonly usage: string;
  readonly does: string;
  readonly question: (id: string, context: Context) => string;
  readonly run: (context: Context, id: string) => Promise<unknown>;
};

/** Adds a command that deletes after confirmation. */
export const addDelete = (parent: Command, add: Add, { usage, does, question, run }: Deletion): Command =>
  add<{ yes?: boolean }>(parent, {
    usage,
    does,
    options: [yesOption],
    run: async (context, [id = ""], { yes }) => {
      await context.confirm(question(id, context), yes);
      await run(context, id);
      await context.result({ deleted: id }, () => `Deleted ${id}.`);
    },
  });
