import {
  type AppendRecipients,
  type LineError,
  type PersonalTexts,
  type RecipientKind,
  recipientLimits,
} from "@herald/contracts";
import { csvColumns, HeraldError, lineErrors } from "@herald/kit";
import type { HashSet } from "./hash-set.ts";
import { createReadRecipient } from "./read-recipient.ts";
import type { LineKind } from "./store-lines.ts";

export type RecipientChunk = Omit<AppendRecipients, "projectId" | "notificationId" | "kind">;

/** A recipient as JSON and its key, or the errors of a refused line. Neither: a duplicate. */
type Entry = { readonly recipient?: { readonly json: string; readonly key: string }; readonly errors?: LineError[] };

type Options = {
  readonly kind: RecipientKind;
  readonly texts: Pick<PersonalTexts, "values" | "declared">;
  readonly seen: HashSet;
  /** Stores a chunk. Throws queue-full while too many wait to be expanded. */
  readonly append: (chunk: RecipientChunk) => Promise<unknown>;
};

/** The lines of recipients. A line with the target of an earlier one is a duplicate, also if an earlier upload has stored that one. */
export const recipientLines = ({ kind, texts, seen, append }: Options): LineKind<Entry> => {
  let readRecipient = createReadRecipient({ kind, texts, header: undefined });
  return {
    limits: recipientLimits,
    readHeader: (header) => {
      if (!csvColumns(header).includes("target"))
        throw new HeraldError(
          "validation-failed",
          "body: the first row must name the columns: `target`, and the variables",
        );
      readRecipient = createReadRecipient({ kind, texts, header });
    },
    skip: (line) => {
      const found = readRecipient(line);
      if ("key" in found) seen.add(found.key);
    },
    read: (line, n) => {
      const found = readRecipient(line);
      if ("problems" in found) {
        const errors = lineErrors(n, found.problems);
        return { entry: { errors }, bytes: Buffer.byteLength(JSON.stringify(errors)) };
      }
      if (!seen.add(found.key)) return { entry: {}, bytes: 0 };
      const json = JSON.stringify({ n, ...found });
      const bytes = Buffer.byteLength(json) + Buffer.byteLength(JSON.stringify(found.key)) + 2;
      return { entry: { recipient: { json, key: found.key } }, bytes };
    },
    store: ({ firstLine, lastLine, entries, last }) => {
      const accepted = entries.flatMap(({ recipient }) => recipient ?? []);
      const refused = entries.flatMap(({ errors }) => (errors ? [errors] : []));
      return append({
        ...{ firstLine, lastLine, last, errors: refused.flat() },
        lines: `[${accepted.map(({ json }) => json).join(",")}]`,
        keys: JSON.stringify(accepted.map(({ key }) => key)),
        ...{ recipients: accepted.length, refused: refused.length },
        duplicates: entries.length - accepted.length - refused.length,
      });
    },
  };
};
