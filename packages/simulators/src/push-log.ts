import type { IncomingHttpHeaders } from "node:http";
import { z } from "zod";
import type { Broken, ProviderStats, Push, PushAttempt, SimulatedProvider } from "./types.ts";

export const providers = ["apns", "fcm", "webpush"] as const satisfies readonly SimulatedProvider[];

/** A cursor from `next`, or an ISO 8601 time with offset. */
const Since = z.union(
  [z.string().regex(/^\d+$/).transform(Number), z.iso.datetime({ offset: true }).transform((text) => new Date(text))],
  "a cursor (a number, as `next` of an earlier answer) or an ISO time such as 2026-01-31T12:00:00Z",
);

/** As in the query of `GET /pushes`. */
export const PushQuery = z.strictObject({
  provider: z.enum(providers).optional(),
  token: z.string().optional(),
  status: z.coerce.number().int().optional(),
  /** A number is a cursor: pushes with a greater `seq`. A date: pushes answered at that time or later. */
  since: Since.optional(),
});
type PushQuery = z.infer<typeof PushQuery>;

/** Keeps headers as text: node's header objects need three times the memory, and more garbage collection. */
interface Kept extends Omit<PushAttempt, "headers"> {
  readonly headers: string;
  readonly seq: number;
  readonly at: number;
}

/** Shows that a credential is present but hides its value, because pages and test reports are shared. */
const mask = (authorization: string) => `${authorization.split(" ", 1)[0]} ***`;

const shownHeaders = (headers: IncomingHttpHeaders) => {
  const shown: Record<string, string> = {};
  for (const name in headers) {
    const value = headers[name];
    if (name.startsWith(":") || value === undefined) continue;
    const text = Array.isArray(value) ? value.join(", ") : value;
    shown[name] = name === "authorization" ? mask(text) : text;
  }
  return shown;
};

/** Text that is not JSON is the sender's mistake, so it is shown unchanged. */
const shownPayload = (payload: unknown) => {
  if (typeof payload !== "string") return payload;
  try {
    return JSON.parse(payload) as unknown;
  } catch {
    return payload;
  }
};

const show = ({ headers, payload, at, ...rest }: Kept): Push => ({
  ...rest,
  headers: JSON.parse(headers) as Record<string, string>,
  payload: shownPayload(payload),
  at: new Date(at).toISOString(),
});

export interface PushLogOptions {
  /** `count` keeps numbers only, for benchmarks. */
  readonly record: "all" | "count";
  /** How many pushes stay in memory. The oldest are dropped first, and `dropped` counts them. */
  readonly keep: number;
}

/** Everything that reached the simulators, in the order of the answers. */
export function createPushLog({ record, keep }: PushLogOptions) {
  let kept: Kept[] = [];
  let dropped = 0;
  let seq = 0;
  const counters = new Map<
    SimulatedProvider,
    { total: number; answers: Map<number | Broken, number>; firstAt: number; lastAt: number }
  >();
  const listeners = new Set<(push: Push) => void>();

  const count = (attempt: PushAttempt, at: number) => {
    const counter = counters.get(attempt.provider) ?? { total: 0, answers: new Map(), firstAt: at, lastAt: at };
    counters.set(attempt.provider, counter);
    const answer = attempt.status ?? attempt.broken ?? "closed";
    counter.total += 1;
    counter.answers.set(answer, (counter.answers.get(answer) ?? 0) + 1);
    counter.lastAt = at;
  };

  return {
    add(attempt: PushAttempt): void {
      const at = Date.now();
      count(attempt, at);
      seq += 1;
      if (record === "count") return;
      const entry: Kept = { ...attempt, headers: JSON.stringify(shownHeaders(attempt.headers)), seq, at };
      kept.push(entry);
      // Drop a tenth at a time: dropping one by one would move the whole array each time.
      if (kept.length >= keep * 1.1) {
        dropped += kept.length - keep;
        kept = kept.slice(-keep);
      }
      if (listeners.size === 0) return;
      const push = show(entry);
      for (const listener of listeners) listener(push);
    },

    /** Oldest first, without pushes that arrive while the caller reads. */
    *pushes({ provider, token, status, since }: PushQuery = {}): Generator<Push> {
      for (const entry of kept.slice()) {
        if (provider !== undefined && entry.provider !== provider) continue;
        if (token !== undefined && entry.token !== token) continue;
        if (status !== undefined && entry.status !== status) continue;
        if (typeof since === "number" && entry.seq <= since) continue;
        if (since instanceof Date && entry.at < since.getTime()) continue;
        yield show(entry);
      }
    },

    stats(): Partial<Record<SimulatedProvider, ProviderStats>> {
      const stats: Partial<Record<SimulatedProvider, ProviderStats>> = {};
      for (const [provider, { total, answers, firstAt, lastAt }] of counters)
        stats[provider] = {
          total,
          answers: Object.fromEntries(answers),
          firstAt: new Date(firstAt).toISOString(),
          lastAt: new Date(lastAt).toISOString(),
        };
      return stats;
    },

    /** The cursor after the newest push. */
    cursor: () => seq,
    dropped: () => dropped,

    /** Deletes pushes and counts. `seq` continues, so that cursors stay valid. */
    clear(): void {
      kept = [];
      dropped = 0;
      counters.clear();
    },

    /** @returns a function that ends the subscription */
    subscribe(listener: (push: Push) => void): () => void {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
}

export type PushLog = ReturnType<typeof createPushLog>;
