import { type Bus, openBucket } from "@herald/bus";
import {
  type DeclaredVariables,
  deviceValueLimits,
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

/**
 * The values of a template's variables: given ones, or fallbacks. Adds a problem for each that is wrong. With `isPart`, one that is missing
 * is no problem.
 */
export const valuesOf = (
  declared: DeclaredVariables,
  given: Readonly<Record<string, VariableValue>>,
  name: string,
  problems: string[],
  { isPart = false } = {},
): Record<string, VariableValue> => {
  const values: Record<string, VariableValue> = {};
  const known = Object.keys(declared).map((variable) => `\`${variable}\``);
  for (const variable of Object.keys(given))
    if (!Object.hasOwn(declared, variable))
      problems.push(
        `${name}.${variable}: is not a variable of the template; it has ${known.length > 0 ? known.join(", ") : "none"}`,
      );
  for (const [variable, { type, fallback }] of Object.entries(declared)) {
    const value = Object.hasOwn(given, variable) ? given[variable] : fallback;
    if (isPart && value === undefined) continue;
    const problem = value === undefined ? "is required by the template" : variableProblem(type, value);
    if (problem !== undefined) problems.push(`${name}.${variable}: ${problem}`);
    else if (value !== undefined) values[variable] = value;
  }
  return values;
};

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
  const problems: string[] = [];
  const values =
    template === undefined ? variables : valuesOf(template.declared, variables, at(name, "variables"), problems);
  return { ...compileLayers(rendering, new Set(Object.keys(variables)), problems), values };
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
