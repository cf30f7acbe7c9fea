import { TopicName } from "./http/v1/topics.ts";

/** A value as a condition writes it: text in quotes, a number, or true, false. Compared as strings, but for order. */
export type Literal = string | number | boolean;

export type Comparison = "==" | "!=" | "<" | "<=" | ">" | ">=";

/** What a comparison looks at: a path into the device's metadata or identifiers, keys joined by dots, or its platform. */
export type Field = { readonly of: "metadata" | "identifiers"; readonly path: string } | { readonly of: "platform" };

/** A condition, understood. */
export type Condition =
  | { readonly kind: "or" | "and"; readonly parts: readonly Condition[] }
  | { readonly kind: "not"; readonly part: Condition }
  | { readonly kind: "topic"; readonly name: string }
  | { readonly kind: "compare"; readonly field: Field; readonly operator: Comparison; readonly value: Literal }
  | { readonly kind: "one-of"; readonly field: Field; readonly values: readonly Literal[] };

/** A clause that an index can serve: devices of a topic, or with a value at a path. */
export type Clause =
  | { readonly kind: "topic"; readonly name: string }
  | { readonly kind: "pair"; readonly of: "metadata" | "identifiers"; readonly path: string; readonly value: string };

/** Deep enough for people, shallow enough for the stack. */
const deepest = 50;

type Token = {
  readonly kind: "text" | "number" | "word" | "symbol" | "end";
  readonly text: string;
  /** 0-based place in the expression. */
  readonly at: number;
};

class Fault extends Error {
  readonly at: number;
  constructor(at: number, message: string) {
    super(message);
    this.at = at;
  }
}

const pattern =
  /\s+|(?<text>'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")|(?<number>-?\d+(?:\.\d+)?(?![\w.]))|(?<word>[\p{L}_][\p{L}\p{N}_-]*(?:\.[^\s.'"()[\],=!<>&|]+)*)|(?<symbol>&&|\|\||==|!=|<=|>=|[!<>()[\],])/uy;

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
    for (const [kind, text] of Object.entries(match.groups ?? {}))
      if (text !== undefined) tokens.push({ kind: kind as Token["kind"], text, at });
  }
  return [...tokens, { kind: "end", text: "the end", at: source.length }];
};

const unquote = (text: string): string => text.slice(1, -1).replace(/\\(.)/gsu, "$1");

const comparisons = new Set<string>(["==", "!=", "<", "<=", ">", ">="]);

const fieldOf = ({ text, at }: Token): Field => {
  if (text === "platform") return { of: "platform" };
  const dot = text.indexOf(".");
  const of = text.slice(0, dot);
  if (dot > 0 && (of === "metadata" || of === "identifiers")) return { of, path: text.slice(dot + 1) };
  throw new Fault(at, `\`${text}\` is not a field: known are metadata.<path>, identifiers.<path> and platform`);
};

/** Recursive descent over `||`, `&&`, `!`, brackets and comparisons, in that order of binding. */
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

  const literal = (): Literal => {
    const token = take();
    if (token.kind === "text") return unquote(token.text);
    if (token.kind === "number") return Number(token.text);
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

  const compare = (token: Token): Condition => {
    const field = fieldOf(token);
    const operator = take();
    if (operator.kind === "symbol" && comparisons.has(operator.text))
      return { kind: "compare", field, operator: operator.text as Comparison, value: literal() };
    if (operator.kind !== "word" || operator.text !== "in")
      throw new Fault(operator.at, `expected == != < <= > >= or in, found ${describe(operator)}`);
    expect("[");
    const values = [literal()];
    while (accept(",")) values.push(literal());
    expect("]");
    return { kind: "one-of", field, values };
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

/** Understands the expression of a `condition:` target, or says what is wrong with it and at which character, from 1. */
export const parseCondition = (source: string): { condition: Condition } | { problem: string } => {
  try {
    return { condition: parse(source) };
  } catch (error) {
    if (!(error instanceof Fault)) throw error;
    return { problem: `at character ${error.at + 1}: ${error.message}` };
  }
};

/** What a condition is asked about. `value` gives the scalar at a path, or undefined. */
export type Subject = {
  readonly platform: string;
  readonly inTopic: (name: string) => boolean;
  readonly value: (of: "metadata" | "identifiers", path: string) => Literal | undefined;
};

const numeric = (value: Literal): number => {
  if (typeof value === "number") return value;
  return typeof value === "string" && /^-?\d+(?:\.\d+)?$/.test(value) ? Number(value) : Number.NaN;
};

/** -1, 0 or 1: as numbers where both are or look like numbers, else as text by code units. */
const order = (one: Literal, other: Literal): number => {
  const [left, right] = [numeric(one), numeric(other)];
  if (!Number.isNaN(left) && !Number.isNaN(right)) return Math.sign(left - right);
  const [a, b] = [String(one), String(other)];
  return a < b ? -1 : a > b ? 1 : 0;
};

const holds = (operator: Comparison, actual: Literal | undefined, wanted: Literal): boolean => {
  // What a device does not have is unequal to everything, and neither before nor after anything.
  if (actual === undefined) return operator === "!=";
  switch (operator) {
    case "==":
      return String(actual) === String(wanted);
    case "!=":
      return String(actual) !== String(wanted);
    case "<":
      return order(actual, wanted) < 0;
    case "<=":
      return order(actual, wanted) <= 0;
    case ">":
      return order(actual, wanted) > 0;
    case ">=":
      return order(actual, wanted) >= 0;
  }
};

/** Whether a device fulfils a condition. */
export const fulfils = (condition: Condition, subject: Subject): boolean => {
  const actual = (field: Field) => (field.of === "platform" ? subject.platform : subject.value(field.of, field.path));
  switch (condition.kind) {
    case "or":
      return condition.parts.some((part) => fulfils(part, subject));
    case "and":
      return condition.parts.every((part) => fulfils(part, subject));
    case "not":
      return !fulfils(condition.part, subject);
    case "topic":
      return subject.inTopic(condition.name);
    case "compare":
      return holds(condition.operator, actual(condition.field), condition.value);
    case "one-of":
      return condition.values.some((value) => holds("==", actual(condition.field), value));
  }
};

const equals = (field: Field, values: readonly Literal[]): Clause[] | undefined =>
  field.of === "platform"
    ? undefined
    : values.map((value) => ({ kind: "pair", of: field.of, path: field.path, value: String(value) }));

/**
 * Clauses of which every device that fulfils the condition fulfils at least one, so that an index gives the candidates;
 * undefined where no positive clause narrows them. Of several that would do, the one with the fewest clauses.
 */
export const candidateClauses = (condition: Condition): Clause[] | undefined => {
  switch (condition.kind) {
    case "topic":
      return [{ kind: "topic", name: condition.name }];
    case "compare":
      return condition.operator === "==" ? equals(condition.field, [condition.value]) : undefined;
    case "one-of":
      return equals(condition.field, condition.values);
    case "not":
      return undefined;
    case "or": {
      const covers = condition.parts.map(candidateClauses);
      return covers.every((cover) => cover !== undefined) ? covers.flat() : undefined;
    }
    case "and":
      return condition.parts
        .map(candidateClauses)
        .filter((cover) => cover !== undefined)
        .toSorted((one, other) => one.length - other.length)[0];
  }
};
