import type { IncomingHttpHeaders } from "node:http";
import type { Provider } from "./simulator.ts";

/** How a request ended that got no answer. */
export type Broken = "rst" | "hang" | "closed";

/** One request that reached a simulator, as it was seen on the wire. */
export interface Attempt {
  readonly provider: Provider;
  readonly token: string;
  /** May hold HTTP/2 pseudo-headers; they are left out when shown. */
  readonly headers: IncomingHttpHeaders;
  /** Web Push: the public key that it was signed with, base64url. */
  readonly vapidKey?: string | undefined;
  /** What the device sees: an object, or the text of a JSON object that is only parsed when somebody looks. */
  readonly payload: unknown;
  /** The provider's id of the message. */
  readonly id: string;
  /** Null when no answer was given; `broken` then says what happened instead. */
  readonly status: number | null;
  readonly broken?: Broken | undefined;
  readonly reason?: string | undefined;
  /** What was wrong with the request, in words: the providers themselves only give a reason. */
  readonly problem?: string | undefined;
}

export interface Push extends Omit<Attempt, "headers" | "payload"> {
  /** Grows by one with every request, never reused: the cursor of `since`. */
  readonly seq: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly payload: unknown;
  /** ISO time of the answer. */
  readonly at: string;
}

export interface PushFilter {
  readonly provider?: Provider | undefined;
  readonly token?: string | undefined;
  readonly status?: number | undefined;
  /** A number is a cursor: pushes with a greater `seq`. A date: pushes answered at that time or later. */
  readonly since?: number | Date | undefined;
}

export interface ProviderStats {
  /** Requests, answered or not. */
  readonly total: number;
  /** By status, and `rst`, `hang`, `closed` for those without. */
  readonly answers: Readonly<Record<string, number>>;
  readonly firstAt: string | null;
  readonly lastAt: string | null;
}

/** Headers are kept as text: node's header objects would take three times the memory, and the time to collect it. */
interface Kept extends Omit<Attempt, "headers"> {
  readonly headers: string;
  readonly seq: number;
  readonly at: number;
}

interface Counter {
  total: number;
  readonly answers: Map<number | Broken, number>;
  firstAt: number;
  lastAt: number;
}

/** A credential is shown as present, never in full: pages and test reports get copied around. */
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

/** Text that is not a JSON object is what the sender got wrong, so it is shown as it came. */
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

const isoOrNull = (ms: number) => (ms === 0 ? null : new Date(ms).toISOString());

export interface PushLogOptions {
  /** `count` keeps numbers only, for benchmarks. */
  readonly record: "all" | "count";
  /** Pushes kept in memory; the oldest go first, and `dropped` says how many went. */
  readonly keep: number;
}

/** Everything that reached the simulators, in the order of the answers. */
export function createPushLog({ record, keep }: PushLogOptions) {
  let kept: Kept[] = [];
  let dropped = 0;
  let seq = 0;
  const counters = new Map<Provider, Counter>();
  const listeners = new Set<(push: Push) => void>();

  const count = (attempt: Attempt, at: number) => {
    let counter = counters.get(attempt.provider);
    if (counter === undefined) {
      counter = { total: 0, answers: new Map(), firstAt: at, lastAt: at };
      counters.set(attempt.provider, counter);
    }
    const answer = attempt.status ?? attempt.broken ?? "closed";
    counter.total += 1;
    counter.answers.set(answer, (counter.answers.get(answer) ?? 0) + 1);
    counter.lastAt = at;
  };

  return {
    add(attempt: Attempt): void {
      const at = Date.now();
      count(attempt, at);
      seq += 1;
      if (record === "count") return;
      const entry: Kept = { ...attempt, headers: JSON.stringify(shownHeaders(attempt.headers)), seq, at };
      kept.push(entry);
      // Cut a tenth at a time: dropping one by one would move the whole array each time.
      if (kept.length >= keep * 1.1) {
        dropped += kept.length - keep;
        kept = kept.slice(-keep);
      }
      if (listeners.size === 0) return;
      const push = show(entry);
      for (const listener of listeners) listener(push);
    },

    /** Oldest first; what comes while the caller reads is not in it. */
    *pushes({ provider, token, status, since }: PushFilter = {}): Generator<Push> {
      for (const entry of kept.slice()) {
        if (provider !== undefined && entry.provider !== provider) continue;
        if (token !== undefined && entry.token !== token) continue;
        if (status !== undefined && entry.status !== status) continue;
        if (typeof since === "number" && entry.seq <= since) continue;
        if (since instanceof Date && entry.at < since.getTime()) continue;
        yield show(entry);
      }
    },

    stats(): Partial<Record<Provider, ProviderStats>> {
      const stats: Partial<Record<Provider, ProviderStats>> = {};
      for (const [provider, { total, answers, firstAt, lastAt }] of counters) {
        stats[provider] = {
          total,
          answers: Object.fromEntries(answers),
          firstAt: isoOrNull(firstAt),
          lastAt: isoOrNull(lastAt),
        };
      }
      return stats;
    },

    /** The cursor after the newest push. */
    cursor: () => seq,
    dropped: () => dropped,

    /** Forgets pushes and counts; `seq` goes on, so that a cursor stays good. */
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
