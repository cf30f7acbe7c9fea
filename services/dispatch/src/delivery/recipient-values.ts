import {
  type NotificationId,
  type ProjectId,
  pagesOfExpansion,
  type RecipientKind,
  type RecipientLine,
  readRecipientLines,
} from "@herald/contracts";
import { createByteCache } from "@herald/kit";
import type { Sendable } from "../domain/settle-row.ts";
import type { Run } from "../stores/delivery-document.ts";
import type { RecipientStore } from "../stores/recipient-store.ts";

/** What of a device is the key of its recipient. */
export const keyOfRecipient = { user: "userId", device: "id", token: "token" } as const;

/** Five of the largest chunks, whose batches are sent one after the other. */
const cachedBytes = 16 * 1_048_576;
/** Bytes of lines in memory for each character of their JSON: some 6, by a heap with chunks of short values. */
const parsedPerCharacter = 8;
/** The batches of a chunk come within seconds. A user may be erased meanwhile. */
const cachedMs = 10_000;

type Values = ReadonlyMap<string, RecipientLine["values"]>;

/** The values of the recipients of a row of a list, from the chunk of its page. */
export const createRecipientValues = (recipients: Pick<RecipientStore, "lines">) => {
  const chunks = createByteCache<string, { readonly values: Values; readonly characters: number }>({
    name: "recipients",
    maxBytes: cachedBytes,
    sizeOf: ({ characters }) => characters * parsedPerCharacter,
    ttl: cachedMs,
    fetchMethod: async (key) => {
      const [projectId, notificationId, chunk] = key.split("/") as [ProjectId, NotificationId, string];
      const json = await recipients.lines(projectId, notificationId, Number(chunk));
      const values = new Map(readRecipientLines(json).map((line) => [line.key, line.values] as const));
      values.delete("");
      return { values, characters: json.length };
    },
  });

  return async (
    { _id, projectId, notificationId }: Run,
    kind: RecipientKind,
  ): Promise<(device: Sendable) => Sendable> => {
    const chunk = Math.floor(Number(_id.split("/")[1]) / pagesOfExpansion);
    const { values } = (await chunks.fetch(`${projectId}/${notificationId}/${chunk}`)) ?? {};
    return (device) => {
      const own = values?.get(device[keyOfRecipient[kind]] ?? "");
      // Without those of its recipient, the texts cannot be rendered.
      return { ...device, values: own && { ...own, ...device.values } };
    };
  };
};

export type RecipientValues = ReturnType<typeof createRecipientValues>;
