import { type Bus, openBucket } from "@herald/bus";
import {
  cutText,
  type DeclaredVariables,
  deviceValueLimits,
  type EntryProblem,
  type NotificationContent,
  type ProjectId,
  RenderedContent,
  type TemplateContent,
  TemplateRecord,
  type TemplateVersion,
  templateKey,
  type VariableValue,
  variableProblem,
} from "@herald/contracts";
import { createByteCache, HeraldError, memoryBytesOf, parseBody } from "@herald/kit";
import {
  type CompiledText,
  type LiquidValues,
  mergeLayers,
  personalShown,
  renderTexts,
  type Texts,
} from "@herald/payload";
import { compileTexts } from "@herald/payload/liquid-parser";

const maxBytes = 32 * 1_048_576;
/** All gateways use a new version within this time. */
const maxAgeMs = 1_000;

export const defaultLocale = "en";

/** A template whose texts are compiled. */
export const compileTemplate = ({ variables: declared = {}, locale = defaultLocale, ...content }: TemplateContent) => {
  const names = new Set(Object.keys(declared));
  return { declared, names, locale, sources: content, ...compileTexts(content, names) };
};
export type Compiled = ReturnType<typeof compileTemplate>;

type Known = { readonly revision: number; readonly version: TemplateVersion; readonly compiled: Compiled };

export type TemplateDirectory = ReturnType<typeof createTemplateDirectory>;

/** The published templates, read from the bus when a send names them. */
export const createTemplateDirectory = (bus: () => Bus) => {
  const cache = createByteCache<string, Known>({
    name: "templates",
    maxBytes,
    sizeOf: memoryBytesOf,
    ttl: maxAgeMs,
    fetchMethod: async (key, known) => {
      const entry = await openBucket(bus(), "push_content", TemplateRecord).get(key);
      if (entry === undefined || entry.revision === known?.revision) return entry && known;
      const { name, version, content } = entry.value;
      return { revision: entry.revision, version: { name, version }, compiled: compileTemplate(content) };
    },
  });
  return {
    /** Undefined: it does not exist or is not published. Throws bus-unavailable. */
    find: (projectId: ProjectId, name: string) => cache.fetch(templateKey(projectId, name)),
    /** This gateway changed it: the next send reads it. */
    forget: (projectId: ProjectId, name: string): void => void cache.delete(templateKey(projectId, name)),
  };
};

export const at = (...path: readonly string[]): string => path.filter((part) => part !== "").join(".");

/** Enough to see which name was meant: a file repeats it for each line. */
const shownNames = 200;

/**
 * The values of a template's variables: given ones, or fallbacks; and what is wrong with those that are given, or missing. One that is given
 * `elsewhere` is not missing.
 */
export const valuesOf = (
  declared: DeclaredVariables,
  given: Readonly<Record<string, VariableValue>>,
  elsewhere: (variable: string) => boolean = () => false,
): { values: Record<string, VariableValue>; problems: EntryProblem[] } => {
  const values: Record<string, VariableValue> = {};
  const problems: EntryProblem[] = [];
  for (const field of Object.keys(given)) {
    if (Object.hasOwn(declared, field)) continue;
    const known = Object.keys(declared).map((variable) => `\`${variable}\``);
    const detail = `is not a variable of the template; it has ${cutText(known.join(", "), shownNames) || "none"}`;
    problems.push({ field, detail, code: "invalid-value" });
  }
  for (const [field, { type, fallback }] of Object.entries(declared)) {
    const value = Object.hasOwn(given, field) ? given[field] : fallback;
    if (value === undefined) {
      if (!elsewhere(field)) problems.push({ field, detail: "is required by the template", code: "missing" });
      continue;
    }
    const detail = variableProblem(type, value);
    if (detail === undefined) values[field] = value;
    else problems.push({ field, detail, code: "invalid-value" });
  }
  return { values, problems };
};

/** The problems of values as messages. */
export const valueMessages = (problems: readonly EntryProblem[], ...path: readonly string[]): string[] =>
  problems.map(({ field, detail }) => `${at(...path, field)}: ${detail}`);

export type Rendering = {
  readonly template: Compiled | undefined;
  readonly version?: TemplateVersion | undefined;
  readonly variables: Readonly<Record<string, VariableValue>> | undefined;
  /** What the send has beside the template. */
  readonly own: Omit<NotificationContent, "targets" | "template" | "recipients">;
  readonly locale: string | undefined;
  /** The path of the notification in the body. */
  readonly name: string;
};

/**
 * The compiled texts of a send over those of its template. They may show `names`, if it has no template. Throws validation-failed with its
 * problems and earlier ones: with a wrong value, the texts that show it would only repeat the problem.
 */
export const compileLayers = (
  { template, own, name }: Rendering,
  names: ReadonlySet<string>,
  problems: readonly string[],
) => {
  const compiled = compileTexts(own, template?.names ?? names);
  const all = [...problems, ...compiled.problems.map(({ path, message }) => `${at(name, ...path)}: ${message}`)];
  if (all.length > 0) throw new HeraldError("validation-failed", all);
  const texts = mergeLayers<CompiledText, object, object>(template?.content ?? {}, compiled.content);
  const shown = personalShown(texts);
  const { paths } = deviceValueLimits;
  if (shown.devicePaths.length > paths)
    throw new HeraldError("validation-failed", [
      `${name}: its texts show ${shown.devicePaths.length} values of a device, and at most ${paths} are accepted`,
    ]);
  return { texts: texts as Texts<CompiledText>, shown };
};

/** The texts of a send that has all values, or of its template, with these values. Throws validation-failed with all problems. */
export const compileNotification = (rendering: Rendering) => {
  const { template, variables = {}, name } = rendering;
  const { values, problems } = template ? valuesOf(template.declared, variables) : { values: variables, problems: [] };
  const messages = valueMessages(problems, name, "variables");
  return { ...compileLayers(rendering, new Set(Object.keys(variables)), messages), values };
};

/** Renders the texts of a send, or of its template. Throws validation-failed with all problems. */
export const renderNotification = (
  { template, version, locale, name }: Rendering,
  { texts, values }: { readonly texts: Texts<CompiledText>; readonly values: LiquidValues },
) => {
  const rendered = renderTexts(texts, values, locale ?? template?.locale ?? defaultLocale);
  if (rendered.problems.length > 0)
    throw new HeraldError(
      "validation-failed",
      rendered.problems.map((problem) => at(name, problem)),
    );
  return parseBody(RenderedContent, { ...rendered.content, template: version }, { prefix: name });
};
