/** The part of JSON Schema that the schema of project files uses. */
export type Shape = {
  readonly $ref?: string;
  readonly $defs?: Readonly<Record<string, Shape>>;
  readonly anyOf?: readonly Shape[];
  readonly type?: string | readonly string[];
  readonly const?: unknown;
  readonly enum?: readonly unknown[];
  readonly pattern?: string;
  readonly examples?: readonly unknown[];
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly minProperties?: number;
  readonly maxProperties?: number;
  readonly items?: Shape;
  readonly properties?: Readonly<Record<string, Shape>>;
  readonly required?: readonly string[];
};

export type Path = readonly (string | number)[];
/** `ofKey`: the last part of the path is a key at fault, not its value. */
export type ShapeProblem = { readonly path: Path; readonly message: string; readonly ofKey?: boolean };

const typeNames: Readonly<Record<string, string>> = {
  string: "text",
  number: "a number",
  integer: "a whole number",
  boolean: "true or false",
  array: "a list",
  object: "names with values",
  null: "null",
};

const typeOf = (value: unknown): string => {
  if (value === null) return "null";
  if (Array.isArray(value)) return "array";
  if (typeof value === "number" && Number.isInteger(value)) return "integer";
  return typeof value;
};

/** The number of letters to insert, delete or replace to make one word the other. */
const distance = (one: string, other: string): number => {
  let row = Array.from({ length: other.length + 1 }, (_, at) => at);
  for (const [at, letter] of [...one].entries()) {
    const next = [at + 1];
    for (let to = 1; to <= other.length; to++) {
      const replaced = (row[to - 1] ?? 0) + (letter === other[to - 1] ? 0 : 1);
      next.push(Math.min(replaced, (row[to] ?? 0) + 1, (next[to - 1] ?? 0) + 1));
    }
    row = next;
  }
  return row[other.length] ?? 0;
};

/** A longer key is not quoted in full. */
const maxKeyLength = 40;

const unknownKey = (key: string, known: readonly string[]): string => {
  const short = key.slice(0, maxKeyLength);
  const [nearest = ""] = known.toSorted((one, other) => distance(short, one) - distance(short, other));
  const isNear = distance(short, nearest) <= Math.max(2, nearest.length / 3);
  return `${JSON.stringify(short)} is not known; ${isNear ? `did you mean ${nearest}?` : `known are ${known.join(", ")}`}`;
};

const textProblem = ({ minLength = 0, maxLength, pattern, examples }: Shape, text: string): string | undefined => {
  if (text.length < minLength) return "may not be empty";
  if (maxLength !== undefined && text.length > maxLength) return `must be at most ${maxLength} characters`;
  if (pattern === undefined || new RegExp(pattern, "u").test(text)) return undefined;
  const example = examples === undefined ? "" : `, such as ${examples[0]}`;
  return `must match ${pattern}${example}`;
};

const numberProblem = (
  { minimum = Number.NEGATIVE_INFINITY, maximum = Number.POSITIVE_INFINITY }: Shape,
  value: number,
) => (value < minimum || value > maximum ? `must be ${minimum} to ${maximum}` : undefined);

/** How many `items` there may be; `min` is 0 or 1. */
const countProblem = (count: number, min = 0, max = Number.POSITIVE_INFINITY, what = "entries"): string | undefined => {
  if (count < min) return `may not be empty`;
  return count > max ? `must be at most ${max} ${what}` : undefined;
};

/** All problems of a value, and of what is in it. A text where an object belongs is not quoted: it could be a secret. */
export const checkShape = (root: Shape, value: unknown): ShapeProblem[] => {
  const check = (given: Shape, value: unknown, path: Path): ShapeProblem[] => {
    const shape = given.$ref === undefined ? given : (root.$defs?.[given.$ref.split("/").at(-1) ?? ""] ?? {});
    const problem = (message: string | undefined): ShapeProblem[] => (message === undefined ? [] : [{ path, message }]);
    if (shape.anyOf !== undefined) return ofNearest(shape.anyOf, value, path);
    if (shape.const !== undefined) return problem(value === shape.const ? undefined : `must be ${shape.const}`);
    if (shape.enum !== undefined)
      return problem(shape.enum.includes(value) ? undefined : `must be one of ${shape.enum.join(", ")}`);
    const types = [shape.type ?? typeOf(value)].flat();
    const isType = types.includes(typeOf(value)) || (types.includes("number") && typeof value === "number");
    if (!isType && shape.type === "object" && typeof value === "string")
      return problem(`must be { ${Object.keys(shape.properties ?? {}).join(" or ")}: … }, not a text`);
    if (!isType) return problem(`must be ${types.map((type) => typeNames[type]).join(" or ")}`);
    if (typeof value === "string") return problem(textProblem(shape, value));
    if (typeof value === "number") return problem(numberProblem(shape, value));
    if (Array.isArray(value))
      return [
        ...problem(countProblem(value.length, shape.minItems, shape.maxItems)),
        ...value.flatMap((item, at) => check(shape.items ?? {}, item, [...path, at])),
      ];
    if (typeof value !== "object" || value === null) return [];
    return checkFields(shape, value as Record<string, unknown>, path);
  };

  const checkFields = (shape: Shape, value: Record<string, unknown>, path: Path): ShapeProblem[] => {
    const { properties = {}, required = [], minProperties, maxProperties } = shape;
    const known = Object.keys(properties);
    const count = countProblem(Object.keys(value).length, minProperties, maxProperties, `of ${known.join(", ")}`);
    const missing = required.filter((name) => !Object.hasOwn(value, name));
    return [
      ...(count === undefined ? [] : [{ path, message: count }]),
      ...missing.map((name) => ({ path, message: `${name} is missing` })),
      ...Object.entries(value).flatMap(([name, inner]) =>
        Object.hasOwn(properties, name)
          ? check(properties[name] as Shape, inner, [...path, name])
          : [{ path: [...path, name], message: unknownKey(name, known), ofKey: true }],
      ),
    ];
  };

  /** The problems of the form that fits best. */
  const ofNearest = (forms: readonly Shape[], value: unknown, path: Path): ShapeProblem[] => {
    const [nearest = []] = forms
      .map((form) => check(form, value, path))
      .toSorted((one, other) => one.length - other.length);
    const isNullable = forms.some(({ type }) => type === "null");
    return isNullable ? nearest.map((one) => ({ ...one, message: `${one.message}, or null` })) : nearest;
  };

  return check(root, value, []);
};
