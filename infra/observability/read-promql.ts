/** One series as a query names it: `name{label<operator>"value"}`. */
export type Selector = { readonly name: string; readonly matchers: readonly Matcher[] };
export type Matcher = { readonly label: string; readonly operator: string; readonly value: string };

const matcher = /(\w+)\s*(=~|!~|!=|=)\s*"((?:[^"\\]|\\.)*)"/g;
const grouping = /\b(?:by|without|on|ignoring|group_left|group_right)\s*\(([^)]*)\)/g;
const words = new Set(["and", "or", "unless", "offset", "bool"]);

/** The series of a PromQL expression and the labels that it groups by. Reads what Herald's queries use, not all of PromQL. */
export const readPromql = (expression: string): { selectors: Selector[]; labels: string[] } => {
  const labels = [...expression.matchAll(grouping)].flatMap(([, list = ""]) =>
    list.split(",").map((one) => one.trim()),
  );
  const rest = expression.replaceAll(grouping, " ");
  const selectors: Selector[] = [];
  // A brace may stand in a quoted value; a name before a parenthesis is a function.
  for (const [, name = "", braces = ""] of rest.matchAll(
    /(?<![\w.:"])([a-zA-Z_:][\w:]*)(?![\w:]*\s*\()(\{(?:[^}"]|"(?:[^"\\]|\\.)*")*\})?|"(?:[^"\\]|\\.)*"|\[[^\]]*\]|\d[\w.]*/g,
  )) {
    if (name === "" || words.has(name)) continue;
    const matchers = [...braces.matchAll(matcher)].map(([, label = "", operator = "", value = ""]) => ({
      label,
      operator,
      value,
    }));
    selectors.push({ name, matchers });
  }
  return { selectors, labels };
};

/** Whether there are all the values that a matcher names, each alternative of a pattern for itself, be it to take or to leave them. */
export const finds = ({ operator, value }: Matcher, values: readonly string[]): boolean =>
  operator.endsWith("~")
    ? value.split("|").every((part) => values.some((one) => new RegExp(`^(?:${part})$`).test(one)))
    : values.includes(value);
