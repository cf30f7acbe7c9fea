import { z } from "zod";
import { parseDuration } from "./duration.ts";
import { TopicName } from "./http/v1/topics.ts";
import { parseVersion, type Version } from "./version.ts";

/** A literal in a condition: quoted text, a number, true or false. Equality compares strings. */
export type Literal = string | number | boolean;

export type Comparison = "==" | "!=" | "<" | "<=" | ">" | ">=";

/** The left side of a comparison: a dotted path into the device's metadata or identifiers, its platform, or its app. */
export type ConditionField =
  | { readonly of: "metadata" | "identifiers"; readonly path: string }
  | { readonly of: "platform" }
  | { readonly of: "app" };

export type Compare = {
  readonly kind: "compare";
  readonly field: ConditionField;
  readonly operator: Comparison;
  readonly value: Literal;
  /** The value as a version, if the comparison compares versions. */
  readonly version?: Version;
};

export type Order = "<" | "<=" | ">" | ">=";

/** The times of a device that conditions compare. */
export const deviceTimes = ["last_seen_at", "last_opened_at"] as const;
export type DeviceTime = (typeof deviceTimes)[number];

/** A comparison with a time, or with a time `agoMs` before the evaluation. */
export type TimeComparison = {
  readonly kind: "time";
  readonly field: DeviceTime;
  readonly operator: Order;
  readonly than: { readonly at: number } | { readonly agoMs: number };
};

/** A parsed condition. */
export type Condition =
  | { readonly kind: "or" | "and"; readonly parts: readonly Condition[] }
  | { readonly kind: "not"; readonly part: Condition }
  | { readonly kind: "topic"; readonly name: string }
  | Compare
  | TimeComparison
  | ({ readonly kind: "exists" } & Exclude<ConditionField, { readonly of: "platform" }>)
  | { readonly kind: "one-of"; readonly field: ConditionField; readonly values: readonly Literal[] };

/** Deep enough for people, and shallow enough for the call stack. */
const deepest = 50;

type Token = {
  readonly kind: "text" | "number" | "word" | "symbol" | "end";
  readonly text: string;
  /** 0-based position in the expression. */
  readonly at: number;
};

class Fault extends Error {
  readonly at: number;
  constructor(at: number, message: string) {
    super(message);
    this.at = at;
  }
}

/** The kind of token of each group in the pattern. Named groups would cost more than all the rest: they create an object per token. */
const kinds = ["text", "number", "word", "symbol"] as const;
const pattern =
  /\s+|('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")|(-?\d+(?:\.\d+)?(?![\w.]))|([\p{L}_][\p{L}\p{N}_-]*(?:\.[^\s.'"()[\],=!<>&|]+)*)|(&&|\|\||==|!=|<=|>=|[!<>()[\],])/uy;

const tokenize = (source: string): Token[] => {
  const tokens: Token[] = [];
  pattern.lastIndex = 0;
  while (pattern.lastIndex < source.length) {
    const at = pattern.lastIndex;
    const match = pattern.exec(source);
    if (match === null) {
      const character = String.fromCodePoint(source.codePointAt(at) ?? 0);
      throw new Fault(
        at,
        /['"]/.test(character) ? "this quote is not closed" : `\`${character}\` is not part of the language`,
      );
    }
    for (const [index, kind] of kinds.entries()) {
      const text = match[index + 1];
      if (text !== undefined) tokens.push({ kind, text, at });
    }
  }
  return [...tokens, { kind: "end", text: "the end", at: source.length }];
};

const unquote = (text: string): string => text.slice(1, -1).replace(/\\(.)/gsu, "$1");

const comparisons = new Set<string>(["==", "!=", "<", "<=", ">", ">="]);

const fieldOf = ({ text, at }: Token): ConditionField => {
  if (text === "platform" || text === "app") return { of: text };
  const dot = text.indexOf(".");
  const of = text.slice(0, dot);
  if (dot > 0 && (of === "metadata" || of === "identifiers")) return { of, path: text.slice(dot + 1) };
  throw new Fault(
    at,
    `\`${text}\` is not a field: known are metadata.<path>, identifiers.<path>, platform, app, ${deviceTimes.join(" and ")}`,
  );
};

/** Fields like `identifiers.app_version` and `system_version` contain versions, even if the condition's value has few dots. */
export const holdsVersions = (field: ConditionField): boolean => "path" in field && field.path.endsWith("_version");

/** Quoted text with two or more dots is a version, not a decimal number. */
const minVersionDots = 2;

const comparison = (field: ConditionField, operator: Comparison, value: Literal): Compare => {
  const text = typeof value === "string" ? value : "";
  const version = holdsVersions(field) || text.split(".").length > minVersionDots ? parseVersion(text) : undefined;
  return { kind: "compare", field, operator, value, ...(version && { version }) };
};

const timeOf = ({ kind, text, at }: Token): TimeComparison["than"] => {
  const source = kind === "text" ? unquote(text) : "";
  const agoMs = source.startsWith("-") ? parseDuration(source.slice(1)) : undefined;
  if (agoMs !== undefined) return { agoMs };
  if (z.iso.datetime({ offset: true }).safeParse(source).success) return { at: Date.parse(source) };
  throw new Fault(
    at,
    "expected a quoted time: '-30d' (30 days ago; also m, h and w), or an RFC 3339 time with offset such as '2030-01-31T09:00:00Z'",
  );
};

const orders = new Set<string>(["<", "<=", ">", ">="]);

/** Recursive descent over `||`, `&&`, `!`, brackets and comparisons, from weakest to strongest binding. */
const parse = (source: string): Condition => {
  const tokens = tokenize(source);
  let next = 0;
  const peek = (): Token => tokens[next] as Token;
  const take = (): Token => tokens[next++] as Token;
  const accept = (symbol: string): boolean => {
    if (peek().kind !== "symbol" || peek().text !== symbol) return false;
    next++;
    return true;
  };
  const expect = (symbol: string): void => {
    if (!accept(symbol)) throw new Fault(peek().at, `expected \`${symbol}\`, found ${describe(peek())}`);
  };

  const joined =
    (kind: "or" | "and", symbol: string, part: (depth: number) => Condition) =>
    (depth: number): Condition => {
      const first = part(depth);
      const parts = [first];
      while (accept(symbol)) parts.push(part(depth));
      return parts.length === 1 ? first : { kind, parts };
    };

  const literal = (field: ConditionField): Literal => {
    const token = take();
    if (token.kind === "text") return unquote(token.text);
    // As a number, version 2.10 would be 2.1.
    if (token.kind === "number") return holdsVersions(field) ? token.text : Number(token.text);
    if (token.kind === "word" && (token.text === "true" || token.text === "false")) return token.text === "true";
    throw new Fault(token.at, `expected a value ('text', a number, true or false), found ${describe(token)}`);
  };

  const topic = (token: Token): Condition => {
    const name = unquote(token.text);
    const place = take();
    if (place.kind !== "word" || place.text !== "in")
      throw new Fault(place.at, `expected \`in topics\`, found ${describe(place)}`);
    const where = take();
    if (where.text !== "topics") throw new Fault(where.at, `expected \`topics\`, found ${describe(where)}`);
    const checked = TopicName.safeParse(name);
    if (!checked.success)
      throw new Fault(token.at, `a topic's name ${checked.error.issues[0]?.message ?? "is not valid"}`);
    return { kind: "topic", name };
  };

  const time = (field: DeviceTime): Condition => {
    const operator = take();
    if (operator.kind !== "symbol" || !orders.has(operator.text))
      throw new Fault(operator.at, `expected < <= > or >=, found ${describe(operator)}`);
    return { kind: "time", field, operator: operator.text as Order, than: timeOf(take()) };
  };

  const exists = (): Condition => {
    expect("(");
    const token = take();
    const field = fieldOf(token);
    if (field.of === "platform") throw new Fault(token.at, "every device has a platform");
    expect(")");
    return { kind: "exists", ...field };
  };

  const compare = (token: Token): Condition => {
    const ofDevice = deviceTimes.find((name) => name === token.text);
    if (ofDevice) return time(ofDevice);
    if (token.text === "exists") return exists();
    const field = fieldOf(token);
    const operator = take();
    if (operator.kind === "symbol" && comparisons.has(operator.text))
      return comparison(field, operator.text as Comparison, literal(field));
    if (operator.kind !== "word" || operator.text !== "in")
      throw new Fault(operator.at, `expected == != < <= > >= or in, found ${describe(operator)}`);
    expect("[");
    const values = [literal(field)];
    while (accept(",")) values.push(literal(field));
    expect("]");
    const parts = values.map((value) => comparison(field, "==", value));
    return parts.some(({ version }) => version) ? { kind: "or", parts } : { kind: "one-of", field, values };
  };

  const unary = (depth: number): Condition => {
    if (depth > deepest) throw new Fault(peek().at, `nested more than ${deepest} deep`);
    if (accept("!")) return { kind: "not", part: unary(depth + 1) };
    if (accept("(")) {
      const inside = either(depth + 1);
      expect(")");
      return inside;
    }
    const token = take();
    if (token.kind === "text") return topic(token);
    if (token.kind === "word") return compare(token);
    throw new Fault(token.at, `expected 'topic' in topics, a comparison, \`!\` or \`(\`, found ${describe(token)}`);
  };
  const both = joined("and", "&&", unary);
  const either = joined("or", "||", both);

  const condition = either(0);
  if (peek().kind !== "end") throw new Fault(peek().at, `expected && or || or the end, found ${describe(peek())}`);
  return condition;
};

const describe = ({ kind, text }: Token): string => (kind === "end" ? text : `\`${text}\``);

/** Parses the expression of a `condition:` target, or returns the problem and its 1-based position. */
export const parseCondition = (source: string): { condition: Condition } | { problem: string } => {
  try {
    return { condition: parse(source) };
  } catch (error) {
    if (!(error instanceof Fault)) throw error;
    return { problem: `at character ${error.at + 1}: ${error.message}` };
  }
};

/** The number of clauses: topics, `exists` and comparisons with one value. `in [a, b]` counts as two. */
export const clausesOf = (condition: Condition): number => {
  switch (condition.kind) {
    case "or":
    case "and":
      return condition.parts.reduce((sum, part) => sum + clausesOf(part), 0);
    case "not":
      return clausesOf(condition.part);
    case "topic":
    case "compare":
    case "time":
    case "exists":
      return 1;
    case "one-of":
      return condition.values.length;
  }
};
