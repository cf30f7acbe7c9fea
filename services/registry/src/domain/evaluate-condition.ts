import {
  type Compare,
  type Condition,
  type ConditionField,
  compareVersions,
  type DeviceTime,
  holdsVersions,
  type Literal,
  type Order,
  parseVersion,
  type TimeComparison,
} from "@herald/contracts";
import { askedIdentifier, identifierMeanings, isComparedByMeaning } from "@herald/rules";

/** A clause that an index can serve: devices of a topic, or with a value at a path. */
export type Clause =
  | { readonly kind: "topic"; readonly name: string }
  | { readonly kind: "pair"; readonly of: "metadata" | "identifiers"; readonly path: string; readonly value: string };

/**
 * The device for which a condition is evaluated. `value` returns the scalar at a path, or undefined; `exists` whether there is any value.
 * Times are in milliseconds since 1970.
 */
export type Subject = {
  readonly platform: string;
  readonly app: string | undefined;
  readonly inTopic: (name: string) => boolean;
  readonly value: (of: "metadata" | "identifiers", path: string) => Literal | undefined;
  readonly exists: (of: "metadata" | "identifiers", path: string) => boolean;
  readonly time: (field: DeviceTime) => number | undefined;
  readonly now: number;
};

const numeric = (value: Literal): number => {
  if (typeof value === "number") return value;
  return typeof value === "string" && /^-?\d+(?:\.\d+)?$/.test(value) ? Number(value) : Number.NaN;
};

/** -1, 0 or 1. Compares by number if both are numbers or look like numbers, otherwise as text by code units. */
const order = (one: Literal, other: Literal): number => {
  const [left, right] = [numeric(one), numeric(other)];
  if (!Number.isNaN(left) && !Number.isNaN(right)) return Math.sign(left - right);
  const [a, b] = [String(one), String(other)];
  return a < b ? -1 : a > b ? 1 : 0;
};

/** Undefined if the two cannot be ordered, because only one is a version. */
const orderOf = (actual: Literal, { field, value, version }: Compare): number | undefined => {
  if (version === undefined) return holdsVersions(field) ? undefined : order(actual, value);
  const other = parseVersion(String(actual));
  return other && compareVersions(other, version);
};

/** Compares as text, but a time zone or locale by what it means. */
const isSame = (clause: Equality, actual: Literal): boolean => {
  const { field } = clause;
  const values = "values" in clause ? clause.values : [clause.value];
  if (!("path" in field) || field.of !== "identifiers" || !isComparedByMeaning(field.path))
    return values.some((value) => String(actual) === String(value));
  return meaningsOf(field.path, actual).some((meaning) => askedBy(clause, field.path, values).has(meaning));
};

type Equality = Extract<Condition, { readonly kind: "compare" | "one-of" }>;

/** What the values of a clause ask for. Read once: a condition is evaluated for each of millions of devices. */
const asked = new WeakMap<Equality, ReadonlySet<string>>();
const askedBy = (clause: Equality, path: string, values: readonly Literal[]): ReadonlySet<string> => {
  const known = asked.get(clause);
  if (known) return known;
  const found = new Set(values.flatMap((value) => askedIdentifier(path, String(value)) ?? []));
  asked.set(clause, found);
  return found;
};

/** The last device's: up to 200 clauses ask for the same. */
let last = { path: "", value: "" as Literal, meanings: [] as readonly string[] };
const meaningsOf = (path: string, value: Literal): readonly string[] => {
  if (last.path !== path || last.value !== value) last = { path, value, meanings: identifierMeanings(path, value) };
  return last.meanings;
};

const isEqual = (actual: Literal, compare: Compare): boolean =>
  compare.version === undefined ? isSame(compare, actual) : orderOf(actual, compare) === 0;

const holds = (actual: Literal | undefined, compare: Compare): boolean => {
  const { operator } = compare;
  // A missing value is unequal to everything and has no order.
  if (actual === undefined) return operator === "!=";
  if (operator === "==" || operator === "!=") return isEqual(actual, compare) === (operator === "==");
  const found = orderOf(actual, compare);
  return found !== undefined && isInOrder[operator](found);
};

/** `found` is the result of a comparison: below, equal to or above 0. */
const isInOrder: Readonly<Record<Order, (found: number) => boolean>> = {
  "<": (found) => found < 0,
  "<=": (found) => found <= 0,
  ">": (found) => found > 0,
  ">=": (found) => found >= 0,
};

const isInTime = ({ field, operator, than }: TimeComparison, subject: Subject): boolean => {
  const at = subject.time(field);
  return at !== undefined && isInOrder[operator](at - ("at" in than ? than.at : subject.now - than.agoMs));
};

/** Whether a device matches a condition. */
export const evaluateCondition = (condition: Condition, subject: Subject): boolean => {
  const actual = (field: ConditionField) => ("path" in field ? subject.value(field.of, field.path) : subject[field.of]);
  switch (condition.kind) {
    case "or":
      return condition.parts.some((part) => evaluateCondition(part, subject));
    case "and":
      return condition.parts.every((part) => evaluateCondition(part, subject));
    case "not":
      return !evaluateCondition(condition.part, subject);
    case "topic":
      return subject.inTopic(condition.name);
    case "compare":
      return holds(actual(condition.field), condition);
    case "time":
      return isInTime(condition, subject);
    case "exists":
      return "path" in condition ? subject.exists(condition.of, condition.path) : subject.app !== undefined;
    case "one-of": {
      const found = actual(condition.field);
      return found !== undefined && isSame(condition, found);
    }
  }
};

const equals = (field: ConditionField, values: readonly Literal[]): Clause[] | undefined =>
  "path" in field
    ? values.map((value) => ({ kind: "pair", of: field.of, path: field.path, value: String(value) }))
    : undefined;

/**
 * Clauses that find the candidates in an index: every matching device matches at least one of them. Undefined if no positive clause narrows
 * the candidates. Of several choices, returns the one with the fewest clauses.
 */
export const candidateClauses = (condition: Condition): Clause[] | undefined => {
  switch (condition.kind) {
    case "topic":
      return [{ kind: "topic", name: condition.name }];
    case "compare":
      // A version can be written in several ways, but the index contains only one.
      return condition.operator === "==" && !condition.version ? equals(condition.field, [condition.value]) : undefined;
    case "one-of":
      return equals(condition.field, condition.values);
    case "not":
    case "time":
    case "exists":
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
