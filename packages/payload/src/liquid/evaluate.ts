import {
  type LiquidChain,
  type LiquidExpression,
  type LiquidNode,
  type LiquidProgram,
  liquidLimits,
} from "@herald/contracts";
import {
  applyFilter,
  blank,
  empty,
  isTrue,
  LiquidRenderError,
  nil,
  plainValue,
  type Runtime,
  textOf,
  valueName,
} from "./filters.ts";

/** Values by name; `user` and `device` have values below them. */
export type LiquidValues = { readonly [name: string]: unknown };

/** Characters that the texts of one device or notification may still have, with the results of their filters. */
export type Room = { left: number };

export const newRoom = (): Room => ({ left: liquidLimits.totalLength });

type Run = {
  readonly room: Room;
  /** Characters of the text so far. */
  length: number;
  readonly values: LiquidValues;
  readonly locals: Map<string, Runtime>;
  readonly locale: string;
  readonly show: (text: string) => string;
};

const tooLarge = (message: string): LiquidRenderError => new LiquidRenderError("payload-too-large", message);

/** Ends before the memory and the work of a text are more than any push could use. */
const use = ({ room }: Run, characters: number): void => {
  room.left -= characters;
  if (room.left < 0)
    throw tooLarge(
      `the texts that are rendered together have more than ${liquidLimits.totalLength} characters, with the results of their filters`,
    );
};

const shown = (run: Run, text: string): string => {
  run.length += text.length;
  if (run.length > liquidLimits.textLength)
    throw tooLarge(`renders to more than ${liquidLimits.textLength} characters`);
  use(run, text.length);
  return text;
};

/** Reads own keys alone, so that no name reaches what JavaScript adds to objects. */
const read = ({ values, locals }: Run, path: readonly string[]): Runtime => {
  const [first = ""] = path;
  if (path.length === 1 && locals.has(first)) return locals.get(first);
  let found: unknown = values;
  for (const key of path) {
    if (typeof found !== "object" || found === null || !Object.hasOwn(found, key)) return undefined;
    found = (found as Record<string, unknown>)[key];
  }
  return typeof found === "string" || typeof found === "number" || typeof found === "boolean" ? found : undefined;
};

const keywords = { nil, empty, blank } as const;

/** What a keyword equals; two keywords only as `nil` equals itself, and `blank` equals it. */
const fits = (keyword: typeof nil | typeof empty | typeof blank, other: Runtime | null): boolean => {
  const none = other === undefined || other === null || other === nil;
  if (keyword === nil) return none;
  if (keyword === blank && (none || other === false)) return true;
  return typeof other === "string" && (keyword === blank ? other.trim() : other) === "";
};

const equals = (left: Runtime | null, right: Runtime): boolean => {
  if (typeof left === "symbol") return fits(left, right);
  return typeof right === "symbol" ? fits(right, left) : left === right;
};

/** A keyword is neither less nor more than another value. */
const compare = (op: ">" | "<" | ">=" | "<=", left: Runtime, right: Runtime): boolean => {
  if (typeof left === "symbol" || typeof right === "symbol" || left === undefined || right === undefined) return false;
  if (op === ">") return left > right;
  if (op === "<") return left < right;
  return op === ">=" ? left >= right : left <= right;
};

const contains = (text: Runtime, part: Runtime): boolean => {
  const whole = plainValue(text);
  return typeof whole === "string" && whole.includes(String(plainValue(part)));
};

const evaluate = (run: Run, expression: LiquidExpression): Runtime => {
  if ("value" in expression) return expression.value;
  if ("path" in expression) return read(run, expression.path);
  if ("keyword" in expression) return keywords[expression.keyword];
  if ("not" in expression) return !isTrue(evaluate(run, expression.not));
  const { op } = expression;
  const left = evaluate(run, expression.left);
  const right = evaluate(run, expression.right);
  switch (op) {
    case "and":
      return isTrue(left) && isTrue(right);
    case "or":
      return isTrue(left) || isTrue(right);
    case "==":
      return equals(left, right);
    case "!=":
      return !equals(left, right);
    case "contains":
      return contains(left, right);
    default:
      return compare(op, left, right);
  }
};

/** A missing value stays missing through every filter but `default`. */
const follow = (run: Run, { from, filters }: LiquidChain): Runtime => {
  let value = evaluate(run, from);
  for (const one of filters) {
    const { filter, args, named } = one;
    const given = args.map((arg) => evaluate(run, arg));
    const byName: Record<string, Runtime> = {};
    for (const name in named) byName[name] = evaluate(run, named[name] as LiquidExpression);
    const isMissing = value === undefined || given.includes(undefined) || Object.values(byName).includes(undefined);
    if (isMissing && filter !== "default") return undefined;
    value = applyFilter({ filter, given: one, from, value, args: given, named: byName, locale: run.locale });
    if (typeof value === "string") use(run, value.length);
  }
  return value;
};

const write = (run: Run, nodes: readonly LiquidNode[]): string => {
  let text = "";
  for (const node of nodes) {
    if (typeof node === "string") text += shown(run, node);
    else if ("output" in node) {
      const value = follow(run, node.output);
      if (value === undefined)
        throw new LiquidRenderError("value-missing", `${valueName(node.output.from)} has no value and no \`default\``);
      text += shown(run, run.show(textOf(value)));
    } else if ("assign" in node) run.locals.set(node.assign, follow(run, node.to));
    else if ("branches" in node) {
      const taken = node.branches.find(({ test, unless }) => isTrue(follow(run, test)) !== (unless === true));
      text += write(run, taken?.body ?? node.else);
    } else {
      const value = plainValue(follow(run, node.case));
      let hit = false;
      for (const { values, body } of node.when) {
        if (!values.some((one) => equals(value, evaluate(run, one)))) continue;
        hit = true;
        text += write(run, body);
      }
      if (!hit) text += write(run, node.else);
    }
  }
  return text;
};

const asIs = (text: string): string => text;
const encoded = (text: string): string => encodeURIComponent(text.toWellFormed());

/**
 * Renders a text. `locale` is the language of the text, as BCP 47, for its dates, numbers and plurals. `room`: shared by texts that are
 * rendered together.
 * @throws LiquidRenderError when a shown value is missing, a filter cannot take a value, or the text is too long.
 */
export const evaluateLiquid = (
  { nodes, encode }: LiquidProgram,
  values: LiquidValues,
  locale: string,
  room = newRoom(),
): string => write({ values, room, length: 0, locals: new Map(), locale, show: encode ? encoded : asIs }, nodes);
