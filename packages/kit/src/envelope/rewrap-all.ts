import type { Logger } from "../logger.ts";
import { type Envelope, type Owner, rewrap } from "./envelope.ts";
import type { MasterKeys } from "./master-keys.ts";

/** A stored envelope; `store` replaces it. */
type StoredSecret = {
  readonly owner: Owner;
  readonly envelope: Envelope;
  readonly store: (rewrapped: Envelope) => Promise<unknown>;
};

/** Encrypts the data keys of all stored secrets of a kind with the first master key, so that older master keys can be removed. */
export const rewrapAll = async (
  keys: MasterKeys,
  secrets: AsyncIterable<StoredSecret>,
  { kind, log }: { readonly kind: string; readonly log: Logger },
): Promise<void> => {
  const configured = new Set(keys.map(({ id }) => id));
  const missing = new Set<string>();
  let moved = 0;
  for await (const { owner, envelope, store } of secrets) {
    if (!configured.has(envelope.keyId)) {
      missing.add(envelope.keyId);
      continue;
    }
    const rewrapped = rewrap(keys, owner, envelope);
    if (rewrapped === undefined) continue;
    await store(rewrapped);
    moved++;
  }
  if (moved > 0) log.info({ kind, moved }, "secrets are now encrypted with the first master key");
  if (missing.size > 0)
    log.error({ kind, missing: [...missing].sort() }, "secrets need master keys that are not configured");
};
