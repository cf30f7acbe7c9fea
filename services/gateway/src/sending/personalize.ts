import {
  hasLiquid,
  type NewRecipient,
  type NotificationContent,
  parseRecipient,
  type RecipientKind,
  type RecipientLine,
  RenderedContent,
  recipientLimits,
  type SendV1,
  type VariableValue,
  words,
} from "@herald/contracts";
import { HeraldError, parseBody } from "@herald/kit";
import { type CompiledText, encodeTexts, mapTexts, mergeLayers, type PersonalShown, type Texts } from "@herald/payload";
import { oversizedText } from "@herald/payload/liquid-parser";
import { placeholder } from "./placeholder.ts";
import {
  at,
  type Compiled,
  compileLayers,
  defaultLocale,
  type Rendering,
  valueMessages,
  valuesOf,
} from "./templates.ts";

/** What a send becomes: its content, and what dispatch needs to render its texts for each device. */
export type RenderedSend = {
  readonly notification: NotificationContent;
  /** The time zone of the project's devices without one, if it is needed; absent: UTC. */
  readonly zone?: string;
} & Pick<SendV1, "personal" | "recipients">;

/** Problems of recipients that a response lists. */
const maxProblems = 100;

/** The names that texts without a template may show. */
const namesOf = (shared: Readonly<Record<string, VariableValue>>, recipients: readonly NewRecipient[]): Set<string> =>
  new Set([...Object.keys(shared), ...recipients.flatMap(({ variables }) => Object.keys(variables ?? {}))]);

/** The texts as a notification shows them: Liquid as it was written, unless it is longer than a text may be. */
const shownTexts = (sources: Texts<string>): Texts<string> => {
  const fits = (text: string, name: string): boolean =>
    !hasLiquid(text) || !Object.hasOwn(words, name) || words[name as keyof typeof words].safeParse(text).success;
  return mapTexts<string, string | undefined, Texts<string>>(sources, (text, { path }) =>
    // An entry of `data` may have the name of a field.
    path[0] === "data" || fits(text, path.at(-1) ?? "") ? text : undefined,
  ) as Texts<string>;
};

/** The recipients, each target once. Adds a problem for each value that is wrong, or missing although the send gives none for all. */
const linesOf = (
  recipients: readonly NewRecipient[],
  template: Compiled | undefined,
  shared: Readonly<Record<string, VariableValue>>,
  name: string,
  problems: string[],
) => {
  let kind: RecipientKind = "user";
  const lines = new Map<string, RecipientLine>();
  const isShared = (variable: string) => Object.hasOwn(shared, variable);
  for (const [index, { target, variables = {} }] of recipients.entries()) {
    const parsed = parseRecipient(target);
    if ("problem" in parsed || lines.has(parsed.key)) continue;
    ({ kind } = parsed);
    if (template && problems.length < maxProblems) {
      const found = valuesOf(template.declared, variables, isShared).problems;
      problems.push(...valueMessages(found, name, "recipients", String(index), "variables"));
    }
    lines.set(parsed.key, { n: index + 1, key: parsed.key, values: variables });
  }
  return { kind, lines: [...lines.values()] };
};

/** Cuts recipients into chunks, in order. */
const inChunks = (lines: readonly RecipientLine[]): RecipientLine[][] => {
  const chunks: RecipientLine[][] = [];
  let bytes = 0;
  for (const line of lines) {
    const size = Buffer.byteLength(JSON.stringify(line)) + 1;
    const last = chunks.at(-1);
    const isFull = last?.length === recipientLimits.chunkLines || bytes + size > recipientLimits.chunkBytes;
    if (last === undefined || isFull) chunks.push([line]);
    else last.push(line);
    bytes = last === undefined || isFull ? size : bytes + size;
  }
  return chunks;
};

/** A send whose texts dispatch renders for each recipient. Throws validation-failed with all problems. */
export const personalize = (
  rendering: Rendering,
  given: readonly NewRecipient[] | { readonly upload: RecipientKind },
): RenderedSend => {
  const { template, variables = {}, own, name } = rendering;
  const recipients = "upload" in given ? [] : given;
  // What is missing here, each recipient gives.
  const shared = template ? valuesOf(template.declared, variables, () => true) : { values: variables, problems: [] };
  const { values } = shared;
  const problems = valueMessages(shared.problems, name, "variables");
  const { kind, lines } = linesOf(recipients, template, values, name, problems);
  if ("upload" in given && own.send_at !== undefined)
    problems.push(`${at(name, "send_at")}: is not accepted with an upload: it is sent as its lines arrive`);
  const layers = { ...compileLayers(rendering, namesOf(values, recipients), problems), values };
  const listed = "upload" in given ? { kind: given.upload, upload: true as const } : { kind, lines: recipients.length };
  return {
    ...renderLater(rendering, layers, { recipients: listed, targets: [] }),
    ...(!("upload" in given) && { recipients: inChunks(lines) }),
  };
};

type Layers = {
  readonly texts: Texts<CompiledText>;
  readonly shown: PersonalShown;
  readonly values: Readonly<Record<string, VariableValue>>;
};

/** A send whose texts dispatch renders for each of its devices. Throws validation-failed with all problems. */
export const renderLater = (
  { template, version, own, locale, name }: Rendering,
  { texts, shown, values }: Layers,
  { targets, ...audience }: Pick<NotificationContent, "targets" | "recipients">,
): RenderedSend => {
  const compiled = encodeTexts(texts);
  const oversized = oversizedText(texts, compiled);
  if (oversized) throw new HeraldError("validation-failed", `${at(name, ...oversized.path)}: ${oversized.message}`);
  const likely = mapTexts<CompiledText, string, Texts<CompiledText>>(texts, (text, place) =>
    typeof text === "string" ? text : placeholder(place),
  );
  const checked: Omit<NotificationContent, "targets"> = parseBody(
    RenderedContent,
    { ...likely, template: version, ...audience },
    { prefix: name },
  );
  const sources = shownTexts(mergeLayers<string, object, object>(template?.sources ?? {}, own) as Texts<string>);
  const { devicePaths } = shown;
  return {
    notification: { ...checked, ...(textsOf(sources) as object), targets },
    personal: {
      texts: compiled,
      locale: locale ?? template?.locale ?? defaultLocale,
      values,
      ...(template && { declared: template.declared }),
      ...(devicePaths.length > 0 && { devicePaths: [...devicePaths] }),
    },
  };
};

/** Each text, and undefined where there is none: it removes what stood in for it. */
const textsOf = <Text>({ title, body, link_to, image, data, localizations }: Texts<Text>) => ({
  title,
  body,
  link_to,
  image,
  data,
  localizations,
});
