import type { Transport } from "@herald/http2-client";

/** Push services that a project's subscriptions are usually spread over are a handful; the rest is a stranger's doing. */
const maxKept = 32;

/** A transport for each push service in use; the one that was used longest ago goes when there are too many. */
export function createPushOrigins(open: (origin: string) => Transport) {
  const known = new Map<string, { readonly transport: Transport; users: number }>();
  const closing = new Set<Promise<void>>();

  function evict(): void {
    for (const [origin, { transport, users }] of known) {
      if (known.size <= maxKept) return;
      if (users > 0) continue;
      known.delete(origin);
      const done = transport.close().finally(() => closing.delete(done));
      closing.add(done);
    }
  }

  return {
    /** Lends the transport to an origin; it stays open at least until `send` is done. */
    async use<Result>(origin: string, send: (transport: Transport) => Promise<Result>): Promise<Result> {
      const entry = known.get(origin) ?? { transport: open(origin), users: 0 };
      known.delete(origin);
      known.set(origin, entry);
      entry.users++;
      evict();
      try {
        return await send(entry.transport);
      } finally {
        entry.users--;
      }
    },
    async close(): Promise<void> {
      await Promise.all([...closing, ...[...known.values()].map(({ transport }) => transport.close())]);
    },
  };
}
