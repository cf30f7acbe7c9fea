import { z } from "zod";
import { DevicePaths } from "./device-values.ts";
import { liquidLimits } from "./liquid-program.ts";
import { erasedTarget } from "./users.ts";
import { DeclaredVariables, VariableValue } from "./variables.ts";

/** The kinds of targets that a recipient may be. */
export const recipientKinds = ["user", "device", "token"] as const;
export const RecipientKind = z.enum(recipientKinds).meta({ id: "RecipientKind" });
export type RecipientKind = z.infer<typeof RecipientKind>;

/**
 * The limits of one notification's recipients. `inline`: in the request that sends it. `lines`: of an uploaded file. `uploads`: of a project
 * that wait for lines. `chunkBytes`: of its lines, their keys and errors as JSON; as a text in the JSON of a message they are at most twice as long.
 * `waitingChunks`: of a notification, that are stored and not expanded. `dryRunErrors`: of lines, that a dry run answers.
 * `uploadMs` and `inlineMs`: after this time without a new line, a list that is not whole ends.
 */
export const recipientLimits = {
  inline: 2_000,
  lines: 2_000_000,
  uploads: 4,
  chunkLines: 2_000,
  chunkBytes: 393_216,
  waitingChunks: 8,
  dryRunErrors: 20,
  uploadMs: 86_400_000,
  inlineMs: 600_000,
} as const;

/** A recipient on its way. `n`: its place in the request or the line in its file, from 1. `key`: the part of its target after the kind, empty after an erasure, and the values of its texts. */
export const RecipientLine = z.object({
  n: z.number().int().min(1),
  key: z.string(),
  values: z.record(z.string(), VariableValue),
});
export type RecipientLine = z.infer<typeof RecipientLine>;

/** A recipient as a target. One that was erased matches no device. */
export const targetOfRecipient = (kind: RecipientKind | undefined, { key }: RecipientLine): string =>
  kind === undefined || key === "" ? erasedTarget : `${kind}:${key}`;

/**
 * The lines of a chunk as the JSON of a {@link RecipientLine} list, which the gateway has checked. Dispatch parses it where it renders the
 * texts: to parse and to check it at each step would cost more than to send the pushes.
 */
export const RecipientLines = z.string();
export const readRecipientLines = (json: string): RecipientLine[] => JSON.parse(json);

/** The keys of the lines of a chunk as the JSON of a list, which dispatch keeps and gives registry unread. */
export const RecipientKeys = z.string();
export const readRecipientKeys = (json: string): string[] => JSON.parse(json);

/** The texts of a notification that dispatch renders for each device, and what each device shows where its recipient gives no value. */
export const PersonalTexts = z.object({
  /** Compiled, as JSON, which only their renderer parses. */
  texts: z.string().max(liquidLimits.compiledBytes),
  /** The language of the texts outside `localizations`. */
  locale: z.string(),
  values: z.record(z.string(), VariableValue),
  /** What its template says of its variables; absent: it has no template. */
  declared: DeclaredVariables.optional(),
  /** What the texts show of the device; absent: nothing. */
  devicePaths: DevicePaths.optional(),
});
export type PersonalTexts = z.infer<typeof PersonalTexts>;
