import {
  deviceValueLimits,
  isDevicePath,
  isVariableName,
  type LiquidChain,
  type LiquidExpression,
  type LiquidFilter,
  type LiquidFilterName,
  type LiquidNode,
  type LiquidOperator,
  type LiquidProgram,
  liquidFilters,
  liquidLimits,
  variableNameRule,
} from "@herald/contracts";
import { Liquid, LiquidError, type Template, type Token, TokenKind } from "liquidjs";
import { afterOutput, followLink, isAfterHost, type LinkPlace, linkStart } from "./link-host.ts";

/** Why a text is refused. Lines and columns count from 1. */
export type LiquidProblem = { readonly line: number; readonly column: number; readonly message: string };

/** What LiquidJS's tree has and its types hide. */
type Parsed<Fields> = Template & Fields;
type Value = {
  readonly initial: { readonly postfix: readonly Token[] };
  readonly filters: readonly { readonly name: string; readonly args: readonly Argument[]; readonly token: Token }[];
};
type Argument = Token | readonly [name: string, value: Token | undefined];
type Branch = { readonly value: Value; readonly templates: readonly Template[] };

const tags = ["if", "unless", "case", "assign"] as const;

/** Only parses: it has the four tags, and any filter, because the compiler refuses an unknown one at its own place. */
const liquid = (() => {
  const parser = new Liquid();
  for (const name of Object.keys(parser.tags)) if (!tags.some((tag) => tag === name)) delete parser.tags[name];
  return parser;
})();

class Refused extends Error {
  readonly token: Token;
  constructor(token: Token, message: string) {
    super(message);
    this.token = token;
  }
}

/** `unless` parses its condition as a text of its own: its place in the source has to be found again. */
const placeOf = (source: string, { input, begin }: Token) => {
  const at = begin + (input === source ? 0 : Math.max(0, source.indexOf(input)));
  const before = source.slice(0, at).split("\n");
  return { line: before.length, column: (before.at(-1)?.length ?? 0) + 1 };
};

const quoted = (names: readonly string[]): string => names.map((name) => `\`${name}\``).join(", ");

/** LiquidJS's messages, without its own position, in words for people. */
const wordsOf = (error: Error): string => {
  const message = error.message.replace(/, line:\d+, col:\d+$/, "");
  const [, tag] = /^tag "(.*)" not found$/.exec(message) ?? [];
  if (tag === undefined) return message;
  return `the tag \`${tag}\` is not supported or has no place here; there are ${quoted(tags)}`;
};

const operators: ReadonlySet<string> = new Set(["==", "!=", ">", "<", ">=", "<=", "contains", "and", "or"]);

type Options = {
  /** The names of values that the text may show. */
  readonly names: ReadonlySet<string>;
  /** The text is a link: outputs are percent-encoded, unless an output is the whole text. */
  readonly link?: boolean;
};

const createCompiler = (names: ReadonlySet<string>, { link, encode }: { link: boolean; encode: boolean }) => {
  const locals = new Set<string>();
  let nodes = 0;
  /** Where the text before a node may have led, through any of its branches. */
  let places: ReadonlySet<LinkPlace> = new Set([linkStart]);
  const count = (token: Token) => {
    if (++nodes > liquidLimits.nodes)
      throw new Refused(token, `has more than ${liquidLimits.nodes} texts, outputs, tags, filters and operators`);
  };

  const pathOf = (token: Token): LiquidExpression => {
    const { variable, props } = token as Token & { variable?: Token; props: readonly (Token & { content: unknown })[] };
    const path = props.map(({ content }) => content);
    if (variable !== undefined || !path.every((key) => typeof key === "string"))
      throw new Refused(token, `${token.getText()} is not supported; name a value, such as \`name\``);
    const name = path.join(".");
    if (name === "user.id") return { path };
    if (path[0] === "device" || path[0] === "user") return ofDevice(token, path);
    if (!names.has(name) && !locals.has(name))
      throw new Refused(
        token,
        `\`${name}\` is not among the variables${names.size > 0 ? ` ${quoted([...names])}` : ""}`,
      );
    return { path };
  };

  const ofDevice = (token: Token, path: string[]): LiquidExpression => {
    const name = path.join(".");
    if (path[0] === "user" || !isDevicePath(path.slice(1)))
      throw new Refused(
        token,
        `\`${name}\` is no value of a device; there are \`device.metadata.<name>\`, \`device.identifiers.<name>\` with up to ${deviceValueLimits.depth} names, and \`user.id\``,
      );
    if (link) throw new Refused(token, `\`${name}\` is not accepted in a link: the app on the device wrote it`);
    return { path };
  };

  const operand = (token: Token): LiquidExpression => {
    const { content, literal } = token as Token & { content?: string | number; literal?: string };
    switch (token.kind) {
      case TokenKind.Literal:
        if (literal === "true" || literal === "false") return { value: literal === "true" };
        return { keyword: literal === "null" ? "nil" : (literal as "nil" | "empty" | "blank") };
      case TokenKind.Number:
      case TokenKind.Quoted:
        return { value: content as string | number };
      case TokenKind.PropertyAccess:
        return pathOf(token);
      default:
        throw new Refused(token, `${token.getText()} is not supported`);
    }
  };

  const expression = (postfix: readonly Token[], at: Token): LiquidExpression => {
    const stack: { readonly value: LiquidExpression; readonly depth: number }[] = [];
    for (const token of postfix) {
      if (token.kind !== TokenKind.Operator) {
        stack.push({ value: operand(token), depth: 0 });
        continue;
      }
      count(token);
      const op = token.getText();
      const right = stack.pop();
      const left = op === "not" ? right : stack.pop();
      if (right === undefined || left === undefined) throw new Refused(token, `\`${op}\` needs a value on each side`);
      if (op !== "not" && !operators.has(op)) throw new Refused(token, `\`${op}\` is not supported`);
      const depth = 1 + Math.max(left.depth, right.depth);
      if (depth > liquidLimits.operatorDepth)
        throw new Refused(token, `\`${op}\` is nested more than ${liquidLimits.operatorDepth} operators deep`);
      const value =
        op === "not" ? { not: right.value } : { op: op as LiquidOperator, left: left.value, right: right.value };
      stack.push({ value, depth });
    }
    const [only, more] = stack;
    if (only === undefined || more !== undefined) throw new Refused(postfix[1] ?? at, "an operator is missing here");
    return only.value;
  };

  const filterOf = ({ name, args, token }: Value["filters"][number]): LiquidFilter => {
    count(token);
    if (!Object.hasOwn(liquidFilters, name))
      throw new Refused(
        token,
        `the filter \`${name}\` is not supported; there are ${quoted(Object.keys(liquidFilters))}`,
      );
    const filter = name as LiquidFilterName;
    const accepted = liquidFilters[filter];
    const [min, max] = accepted.positional;
    const positional: LiquidExpression[] = [];
    const named: Record<string, LiquidExpression> = {};
    for (const arg of args) {
      if (!Array.isArray(arg)) {
        positional.push(operand(arg as Token));
        continue;
      }
      const [key, value] = arg as [string, Token | undefined];
      if (!accepted.named.some((one) => one === key))
        throw new Refused(token, `the filter \`${name}\` takes no \`${key}:\`${knownNames(accepted.named)}`);
      if (value === undefined) throw new Refused(token, `\`${key}:\` of the filter \`${name}\` needs a value`);
      named[key] = operand(value);
    }
    if (positional.length < min || positional.length > max)
      throw new Refused(token, `the filter \`${name}\` takes ${countOf(min, max)}, not ${positional.length}`);
    if (filter === "plural" && named.other === undefined)
      throw new Refused(token, "the filter `plural` needs `other:`, the form for all other numbers");
    return { filter, args: positional, ...(Object.keys(named).length > 0 && { named }) };
  };

  const chain = ({ initial, filters }: Value, at: Token): LiquidChain => ({
    from: expression(initial.postfix, at),
    filters: filters.map(filterOf),
  });

  const list = (templates: readonly Template[], depth: number): LiquidNode[] =>
    templates.map((template) => node(template, depth)).filter((one) => one !== "");

  const node = (template: Template, depth: number): LiquidNode => {
    const token = template.token as Token & { name?: string };
    if (token.kind === TokenKind.HTML) {
      count(token);
      const { str } = template as Parsed<{ str: string }>;
      if (encode) places = new Set([...places].map((place) => followLink(place, str)));
      return str;
    }
    count(token);
    if (token.kind === TokenKind.Output) {
      const output = chain((template as Parsed<{ value: Value }>).value, token);
      if (encode && ![...places].every(isAfterHost))
        throw new Refused(
          token,
          `${token.getText()} is not accepted in or before the host of a link: write the host out, as in https://shop.example/{{ order }}, or make the whole link one value`,
        );
      if (encode) places = new Set([afterOutput]);
      return { output };
    }
    if (depth === liquidLimits.depth) throw new Refused(token, `is nested more than ${liquidLimits.depth} tags deep`);
    if (token.name === "assign") {
      const { key, value } = template as Parsed<{ key: string; value: Value }>;
      const to = chain(value, token);
      if (!isVariableName(key))
        throw new Refused(token, `\`${key}\` is not accepted as a name: it ${variableNameRule}`);
      locals.add(key);
      return { assign: key, to };
    }
    if (token.name === "case") {
      const { value, branches, elseTemplates } = template as Parsed<{
        value: Value;
        branches: readonly { values: readonly Token[]; templates: readonly Template[] }[];
        elseTemplates: readonly Template[];
      }>;
      const before = places;
      let after: ReadonlySet<LinkPlace> = new Set();
      const tested = chain(value, token);
      const when = branches.map(({ values, templates }) => {
        count(token);
        // Each `when` with the value is written.
        places = either(before, after);
        const body = list(templates, depth + 1);
        after = either(after, places);
        return { values: values.map(operand), body };
      });
      places = before;
      const otherwise = list(elseTemplates, depth + 1);
      places = either(after, places);
      return { case: tested, when, else: otherwise };
    }
    const { branches, elseTemplates } = template as Parsed<{
      branches: readonly Branch[];
      elseTemplates?: readonly Template[];
    }>;
    const before = places;
    let after: ReadonlySet<LinkPlace> = new Set();
    const tested = branches.map(({ value, templates }, at) => {
      count(token);
      const unless = token.name === "unless" && at === 0;
      const test = chain(value, token);
      places = before;
      const body = list(templates, depth + 1);
      after = either(after, places);
      return { test, ...(unless && { unless: true as const }), body };
    });
    places = before;
    const otherwise = list(elseTemplates ?? [], depth + 1);
    places = either(after, places);
    return { branches: tested, else: otherwise };
  };
  return list;
};

const either = <One>(some: ReadonlySet<One>, others: ReadonlySet<One>): ReadonlySet<One> =>
  new Set([...some, ...others]);

const knownNames = (names: readonly string[]): string =>
  names.length === 0 ? "" : `; it takes ${names.map((name) => `\`${name}:\``).join(", ")}`;

const countOf = (min: number, max: number): string => {
  const values = max === 1 ? "value" : "values";
  return min === max ? `${min === 0 ? "no" : min} ${values}` : `${min} to ${max} ${values}`;
};

/** Parses a text. The result is a program for `evaluateLiquid`, or the first problem with its place. */
export const compileLiquid = (
  source: string,
  { names, link = false }: Options,
): { readonly program: LiquidProgram } | { readonly problem: LiquidProblem } => {
  if (Buffer.byteLength(source) > liquidLimits.sourceBytes)
    return { problem: { line: 1, column: 1, message: `is longer than ${liquidLimits.sourceBytes} bytes` } };
  try {
    const templates = liquid.parse(source);
    const written = templates.filter((one) => (one as Parsed<{ str?: string }>).str !== "");
    const isWhole = written.length === 1 && written[0]?.token.kind === TokenKind.Output;
    const encode = link && !isWhole;
    const nodes = createCompiler(names, { link, encode })(templates, 0);
    return { program: { nodes, ...(encode && { encode: true as const }) } };
  } catch (error) {
    if (error instanceof Refused) return { problem: { ...placeOf(source, error.token), message: error.message } };
    if (LiquidError.is(error)) return { problem: { ...placeOf(source, error.token), message: wordsOf(error) } };
    // The parser calls itself for each bracket within a bracket.
    if (error instanceof RangeError) return { problem: { line: 1, column: 1, message: "is nested too deeply" } };
    throw error;
  }
};
