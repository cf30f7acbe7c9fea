import { type FieldProblem, HeraldError } from "@herald/client";
import { contentFields } from "./content-fields.ts";
import type { Draft } from "./draft.ts";
import { rolloutFields } from "./rollout-fields.ts";

/** The fields of the form as it names them, by their names in the API, or their paths. */
const labels: Readonly<Record<string, string>> = {
  ...Object.fromEntries(Object.entries(contentFields).map(([name, { label }]) => [name, label])),
  ...Object.fromEntries(Object.entries(rolloutFields).map(([path, { label }]) => [`rollout/${path}`, label])),
  ...{ template: "Template", kind: "Kind", targets: "Targets", recipients: "A file" },
  ...{ send_at: "Send at", past: "Send at" },
};

/** What a person of the form can do about a sentence of the API, which is written for programs. */
const inWords: readonly (readonly [sentence: RegExp, words: string])[] = [
  [/^is required by the template$/, "The template needs a value"],
  [/^is not a variable of the template.*$/, "The template has no such variable"],
  [/^line (\d+), column (\d+): `(\S+)` is not among the variables.*$/, "Line $1, column $2: there is no variable $3"],
  [/^is required, because `send_at` has passed.*$/, "Choose what devices get whose clocks have passed this time"],
  [/^is not accepted with an upload.*$/, "A file is sent at once: leave the time out"],
  [/^must be from 1\/4096 to 0\.5$/, "Between 0.025 % and 50 %"],
  [/^cannot be set beside `recipients`.*$/, "needs targets, not recipients"],
  [/^is not a target: /, "is not a target: "],
];

/** A sentence of the API in the words of the form. */
const wordsOf = (detail: string): string => {
  const [found] = inWords.filter(([sentence]) => sentence.test(detail));
  const words = found ? detail.replace(found[0], found[1]) : detail;
  return words.replaceAll(/`([^`]*)`/g, (_, name: string) => labels[name] ?? name);
};

/** A field's name in the API without what is inside of it; undefined: the problem is not of a field. */
const pathOf = ({ pointer }: FieldProblem): readonly string[] => {
  const [, path] = /^#\/(?:notification|preview\/content|preview)\/(.+)$/.exec(pointer ?? "") ?? [];
  return path?.split("/").map((part) => decodeURIComponent(part)) ?? [];
};

const labelOf = (path: readonly string[]): string | undefined => labels[path.join("/")] ?? labels[path[0] ?? ""];

/** The fields that the form has but for those of `draft` that only its JSON can set. */
const isShown = (path: readonly string[], { variables }: Draft): boolean =>
  path[0] === "variables" ? variables.some(({ name }) => name === path[1]) : labelOf(path) !== undefined;

export type ComposeProblems = {
  /** What is wrong with a field, by its path in the API. */
  readonly of: (path: string) => string | undefined;
  /** Labels of the fields that have a problem, each once. */
  readonly fields: readonly string[];
  /** The sentences that are beside no field. */
  readonly others: readonly string[];
};

/** The problems of a draft, each in one place: beside its field, or in `others`. */
export const composeProblems = (error: unknown, draft: Draft): ComposeProblems => {
  const problems = error instanceof HeraldError && error.status === 422 ? error.problems : [];
  const said = new Map<string, Set<string>>();
  const fields = new Set<string>();
  const others = new Set<string>();
  for (const problem of problems) {
    const path = pathOf(problem);
    const [field = "", inner = ""] = path;
    const words = wordsOf(problem.detail);
    if (isShown(path, draft)) {
      const target = field === "targets" ? draft.targets[Number(inner)] : undefined;
      const key = path.join("/");
      said.set(key, (said.get(key) ?? new Set()).add(target === undefined ? words : `${target} ${words}`));
      fields.add(field === "variables" ? inner : (labelOf(path) ?? field));
    } else others.add(path.length > 0 ? `${path.join(" › ")}: ${words}` : words);
  }
  return {
    of: (name) => {
      const found = [...said].flatMap(([path, words]) => (`${path}/`.startsWith(`${name}/`) ? [...words] : []));
      return found.length > 0 ? found.join("; ") : undefined;
    },
    fields: [...fields],
    others: [...others],
  };
};
