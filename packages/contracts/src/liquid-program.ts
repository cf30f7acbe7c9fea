import { z } from "zod";

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
  /** Characters of a filter's result. */
  resultLength: 4_096,
  /** Characters of a rendered text: no provider takes a longer one. */
  textLength: 4_096,
  /** The same of all texts of a notification, or of a device, with the results of their filters: twice what a notification may have. */
  totalLength: 131_072,
} as const;

/** Whether a text has Liquid; any other text is its own result. */
export const hasLiquid = (source: string): boolean => source.includes("{{") || source.includes("{%");

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

const Expression: z.ZodType<LiquidExpression> = z.lazy(() =>
  z.union([
    z.strictObject({ value: z.union([z.string(), z.number(), z.boolean()]) }),
    z.strictObject({ keyword: z.enum(["nil", "empty", "blank"]) }),
    z.strictObject({ path: z.array(z.string()).min(1) }),
    z.strictObject({ not: Expression }),
    z.strictObject({ op: z.enum(liquidOperators), left: Expression, right: Expression }),
  ]),
);

const Chain = z.strictObject({
  from: Expression,
  filters: z.array(
    z.strictObject({
      filter: z.enum(Object.keys(liquidFilters) as [LiquidFilterName, ...LiquidFilterName[]]),
      args: z.array(Expression),
      named: z.record(z.string(), Expression).optional(),
    }),
  ),
});

const Node: z.ZodType<LiquidNode> = z.lazy(() =>
  z.union([
    z.string(),
    z.strictObject({ output: Chain }),
    z.strictObject({ assign: z.string(), to: Chain }),
    z.strictObject({
      branches: z.array(z.strictObject({ test: Chain, unless: z.literal(true).optional(), body: Nodes })),
      else: Nodes,
    }),
    z.strictObject({
      case: Chain,
      when: z.array(z.strictObject({ values: z.array(Expression), body: Nodes })),
      else: Nodes,
    }),
  ]),
);
const Nodes = z.array(Node);

/** A text with Liquid, ready to be evaluated. */
export const LiquidProgram = z.strictObject({
  nodes: Nodes,
  /** Outputs are percent-encoded, because the text is a link. */
  encode: z.literal(true).optional(),
});
export type LiquidProgram = { readonly nodes: readonly LiquidNode[]; readonly encode?: true | undefined };
