/**
 * Liquid as data: the gateway parses a text once, and any service evaluates the result without a parser. See `packages/payload`.
 */

/** The limits of one text. Counts, never time, so that the same text is always accepted or always refused. */
export const liquidLimits = {
  sourceBytes: 8_192,
  /** Texts, outputs, tags, branches, filters and operators. */
  nodes: 200,
  /** Tags within tags. */
  depth: 8,
  /** Operators within operators, such as `or` in a chain. */
  operatorDepth: 16,
  /** The compiled texts of a notification, or of a template, together, as JSON. */
  compiledBytes: 65_536,
  /** Characters of a filter's result. */
  resultLength: 4_096,
  /** Characters of a rendered text: no provider takes a longer one. */
  textLength: 4_096,
  /** The same of all texts of a notification, or of a device, with the results of their filters: twice what a notification may have. */
  totalLength: 131_072,
} as const;

/** The parameters of each filter: the least and the most values by position, and the names of those by name. */
export const liquidFilters = {
  default: { positional: [1, 1], named: ["allow_false"] },
  upcase: { positional: [0, 0], named: [] },
  downcase: { positional: [0, 0], named: [] },
  capitalize: { positional: [0, 0], named: [] },
  truncate: { positional: [0, 2], named: [] },
  append: { positional: [1, 1], named: [] },
  prepend: { positional: [1, 1], named: [] },
  plus: { positional: [1, 1], named: [] },
  minus: { positional: [1, 1], named: [] },
  times: { positional: [1, 1], named: [] },
  round: { positional: [0, 1], named: [] },
  date: { positional: [0, 1], named: ["time", "zone"] },
  number: { positional: [0, 1], named: [] },
  currency: { positional: [1, 1], named: [] },
  plural: { positional: [0, 0], named: ["zero", "one", "two", "few", "many", "other"] },
} as const satisfies Record<string, { positional: readonly [min: number, max: number]; named: readonly string[] }>;

export type LiquidFilterName = keyof typeof liquidFilters;

export const liquidOperators = ["==", "!=", ">", "<", ">=", "<=", "contains", "and", "or"] as const;
export type LiquidOperator = (typeof liquidOperators)[number];

export type LiquidExpression =
  | { readonly value: string | number | boolean }
  | { readonly keyword: "nil" | "empty" | "blank" }
  /** The name of a value, and the keys below it. */
  | { readonly path: readonly string[] }
  | { readonly not: LiquidExpression }
  | { readonly op: LiquidOperator; readonly left: LiquidExpression; readonly right: LiquidExpression };

export type LiquidFilter = {
  readonly filter: LiquidFilterName;
  readonly args: readonly LiquidExpression[];
  readonly named?: Readonly<Record<string, LiquidExpression>> | undefined;
};

/** An expression and the filters that its value passes through. */
export type LiquidChain = { readonly from: LiquidExpression; readonly filters: readonly LiquidFilter[] };

export type LiquidNode =
  /** Text, as it is. */
  | string
  | { readonly output: LiquidChain }
  | { readonly assign: string; readonly to: LiquidChain }
  /** The first branch whose value is true, or false if `unless`. */
  | {
      readonly branches: readonly {
        readonly test: LiquidChain;
        readonly unless?: true | undefined;
        readonly body: readonly LiquidNode[];
      }[];
      readonly else: readonly LiquidNode[];
    }
  /** Each `when` that has the value of `case`; if none has, `else`. */
  | {
      readonly case: LiquidChain;
      readonly when: readonly { readonly values: readonly LiquidExpression[]; readonly body: readonly LiquidNode[] }[];
      readonly else: readonly LiquidNode[];
    };

/**
 * A text with Liquid, ready to be evaluated. Without a schema, because a program on its way is a text that only its renderer parses: to check
 * each of its parts at each hop would cost more than all else that a send needs.
 */
export type LiquidProgram = {
  readonly nodes: readonly LiquidNode[];
  /** Outputs are percent-encoded, because the text is a link. */
  readonly encode?: true | undefined;
};
