import { type Command, InvalidArgumentError, Option } from "commander";
import type { Context } from "./context.ts";

/** Runs a command; a number is its exit code. */
// biome-ignore lint/suspicious/noConfusingVoidType: a command without an exit code of its own returns nothing
type Outcome = number | undefined | void;
type Handle = (context: Context) => Promise<Outcome>;
export type Execute = (command: Command, handle: Handle) => Promise<void>;

type Words = readonly string[];

export type Definition<Options> = {
  /** As commander has it: `get <id>`. */
  readonly usage: string;
  readonly does: string;
  /** Commands to type, each with its purpose. */
  readonly examples?: readonly (readonly [command: string, why: string])[];
  readonly options?: readonly Option[];
  readonly run: (context: Context, words: Words, options: Options) => Promise<Outcome>;
};

export type Add = <Options = Record<never, never>>(parent: Command, definition: Definition<Options>) => Command;

const wholeNumber = (text: string): number => {
  if (!/^\d{1,9}$/.test(text)) throw new InvalidArgumentError("It must be a whole number.");
  return Number(text);
};

export const option = (flags: string, description: string): Option => new Option(flags, description);
export const numberOption = (flags: string, description: string): Option =>
  option(flags, description).argParser(wholeNumber);
/** An option that may be repeated. */
export const repeated = (flags: string, description: string, choices?: readonly string[]): Option => {
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
export const timeRange = ({ oldestFirst, createdAfter, createdBefore }: TimeChoice) => ({
  sort: oldestFirst ? ("created_at" as const) : ("-created_at" as const),
  createdAfter,
  createdBefore,
});

export const yesOption = option("--yes", "do not ask for confirmation");

const helpOf = (examples: Definition<never>["examples"] = []): string =>
  examples.length === 0
    ? ""
    : `\nExamples:\n${examples.map(([command, why]) => `  ${why}\n    $ herald ${command}`).join("\n")}`;

/** Adds commands to a program or a group of it. */
export const createAdd =
  (execute: Execute): Add =>
  <Options>(parent: Command, { usage, does, examples, options = [], run }: Definition<Options>) => {
    const command = parent.command(usage).description(does).addHelpText("after", helpOf(examples));
    for (const one of options) command.addOption(one);
    return command.action(async (...given: unknown[]) => {
      // Commander gives each argument by itself, those that repeat as a list, then the options and the command.
      const words = given
        .slice(0, -2)
        .flat()
        .filter((word) => word !== undefined) as string[];
      await execute(command, (context) => run(context, words, command.opts() as Options));
    });
  };
