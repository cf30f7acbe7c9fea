import type {
  KindDeclaration,
  LimitsChange,
  NewProject,
  NewProjectToken,
  NewWebhook,
  ProjectChange,
  ProviderSettings,
  WebhookChange,
} from "@herald/client";
import { isAlias, LineCounter, type Node, parseDocument, visit } from "yaml";
import { UsageError } from "../failures.ts";
import { checkShape, type Path, type Shape, type ShapeProblem } from "./check-shape.ts";
import schema from "./schema.json" with { type: "json" };

export { schema };

/** Where a secret is read from; one of both. */
export type Source = { readonly file?: string; readonly env?: string };
/** Where a secret is written to. */
type Secret = { readonly secret?: { readonly write: string } | undefined };

export type ProviderName = keyof ProviderSettings;
export type TokenOfFile = NewProjectToken & Secret;
export type WebhookOfFile = NewWebhook & Pick<WebhookChange, "enabled"> & Secret;

export type KindOfFile = KindDeclaration & { readonly kind: string };

/** What `herald apply` reads. */
export type ProjectFile = {
  readonly herald: 1;
  readonly project: Required<Pick<NewProject, "key">> & ProjectChange;
  readonly limits?: LimitsChange;
  readonly kinds?: readonly KindOfFile[];
  /** Settings as in the API, but with sources instead of secrets. */
  readonly providers?: { readonly [Name in ProviderName]?: Readonly<Record<string, unknown>> };
  readonly tokens?: readonly TokenOfFile[];
  readonly webhooks?: readonly WebhookOfFile[];
};

const maxBytes = 1_048_576;
/** More of them do not help. */
const maxProblems = 20;

const first = (problems: readonly string[]): string[] =>
  problems.length <= maxProblems
    ? [...problems]
    : [...problems.slice(0, maxProblems), `… and ${problems.length - maxProblems} more problems`];

/** `tokens[0].scopes`. */
const written = (path: Path): string =>
  path.reduce<string>((text, part) => {
    if (typeof part === "number") return `${text}[${part}]`;
    return text === "" ? part : `${text}.${part}`;
  }, "");

/** Entries that would stand for the same thing. */
const repeated = ({ kinds = [], tokens = [], webhooks = [] }: ProjectFile): ShapeProblem[] => {
  const entries: readonly (readonly [Path, value: string | undefined])[] = [
    ...kinds.map(({ kind }, at) => [["kinds", at, "kind"], `kind ${kind}`] as const),
    ...tokens.map(({ name }, at) => [["tokens", at, "name"], `name ${name}`] as const),
    ...webhooks.map(({ url }, at) => [["webhooks", at, "url"], `url ${url}`] as const),
    ...Object.entries({ tokens, webhooks }).flatMap(([section, list]) =>
      list.map(({ secret }, at) => [[section, at, "secret", "write"], secret && `file ${secret.write}`] as const),
    ),
  ];
  const seen = new Set<string>();
  return entries.flatMap(([path, value]) => {
    if (value === undefined) return [];
    if (seen.has(value)) return [{ path, message: `another entry has the ${value}; each must have its own` }];
    seen.add(value);
    return [];
  });
};

/** Parses a project file. Throws a UsageError with all problems, each with line and column. `name` is the file's. */
export const parseProjectFile = (text: string, name: string) => {
  try {
    return parse(text, name);
  } catch (error) {
    // The stack overflows.
    if (error instanceof RangeError) throw new UsageError(`${name} is nested too deeply.`);
    throw error;
  }
};

const parse = (text: string, name: string) => {
  if (Buffer.byteLength(text) > maxBytes) throw new UsageError(`${name} is larger than 1 MiB.`);
  const lines = new LineCounter();
  const at = (offset: number, problem: string): string => {
    const { line, col } = lines.linePos(offset);
    return `${name}:${Math.max(line, 1)}:${Math.max(col, 1)}: ${problem}`;
  };
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false });
  const broken = [...document.errors, ...document.warnings];
  if (broken.length > 0) throw new UsageError(first(broken.map(({ pos, message }) => at(pos[0], message))));
  const aliases: string[] = [];
  visit(document, {
    Node: (_, node) => {
      if (isAlias(node)) aliases.push(at(node.range?.[0] ?? 0, "aliases are not accepted; write the value again"));
    },
  });
  if (aliases.length > 0) throw new UsageError(first(aliases));

  /** The position of a part of the file: its own, or that of the deepest part around it that the file has. */
  const place = (path: Path): number => {
    for (let length = path.length; length > 0; length--) {
      const node = document.getIn(path.slice(0, length), true) as Node | undefined;
      if (node?.range) return node.range[0];
    }
    return document.contents?.range?.[0] ?? 0;
  };
  const keyPlace = (path: Path): number => {
    const map = path.length === 1 ? document.contents : document.getIn(path.slice(0, -1), true);
    const { items = [] } = (map ?? {}) as { readonly items?: readonly { readonly key?: unknown }[] };
    const key = items.map((item) => item.key as Node & { value?: unknown }).find((one) => one?.value === path.at(-1));
    return key?.range?.[0] ?? place(path.slice(0, -1));
  };
  const sentence = ({ path, message, ofKey }: ShapeProblem): string =>
    at(
      ofKey ? keyPlace(path) : place(path),
      [written(ofKey ? path.slice(0, -1) : path), message].filter(Boolean).join(": "),
    );
  /** Throws if there are problems. `hint` says what to do. */
  const refuse = (problems: readonly ShapeProblem[], hint?: string): void => {
    if (problems.length > 0) throw new UsageError(first(problems.map(sentence)), hint);
  };

  const value: unknown = document.toJS();
  refuse(checkShape(schema as unknown as Shape, value), "`herald apply --schema` prints what a file may contain.");
  const file = value as ProjectFile;
  refuse(repeated(file));
  return { file, refuse };
};
