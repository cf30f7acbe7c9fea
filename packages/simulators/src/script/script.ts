import type { Rule } from "../types.ts";
import { decidesRequests, parseScript, type ScriptTarget } from "./rule.ts";

/** Any fixed number works: two runs must draw the same. */
const defaultSeed = 1;

/** A rule and its number of uses. */
interface Entry {
  readonly rule: Rule;
  readonly decides: boolean;
  used: number;
  /** Attempts per token, kept for rules with a share only. */
  readonly attempts: Map<string, number>;
  /** What a rule with `beyond` allowed, at the time in milliseconds since 1970. */
  allowed: { count: number; at: number } | undefined;
}

/** FNV-1a with murmur3's final avalanche: similar inputs must not draw similar numbers. */
const draw = (text: string): number => {
  let hash = 0x811c9dc5;
  for (let i = 0; i < text.length; i += 1) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return ((hash ^ (hash >>> 16)) >>> 0) / 2 ** 32;
};

const spent = ({ rule, used }: Entry) => rule.times !== undefined && used >= rule.times;
const concerns = ({ rule }: Entry, target: ScriptTarget) =>
  rule.provider === undefined ? target !== "fcm-token" : rule.provider === target;

/** The rules for the simulators' answers. Without rules they accept every valid request. */
export function createScript(now: () => number = Date.now) {
  let entries: Entry[] = [];
  let seed = defaultSeed;
  const listeners = new Set<() => void>();

  /**
   * Drawn from seed, rule, token and the token's number of attempts. So the order and timing of arrivals do not change which tokens are
   * hit, and a retry may succeed.
   */
  const inShare = (entry: Entry, index: number, token: string) => {
    const { share } = entry.rule;
    if (share === undefined) return true;
    const attempt = entry.attempts.get(token) ?? 0;
    entry.attempts.set(token, attempt + 1);
    return draw(`${seed}/${index}/${token}/${attempt}`) < share;
  };

  const isBeyond = (entry: Entry): boolean => {
    const { beyond } = entry.rule;
    if (beyond === undefined) return true;
    const at = now();
    const { count, at: before } = entry.allowed ?? { count: beyond.burst, at };
    const full = Math.min(beyond.burst, count + (at - before) / beyond.everyMs);
    entry.allowed = { count: full < 1 ? full : full - 1, at };
    return full < 1;
  };

  return {
    /**
     * Replaces all rules and resets their counts.
     * @param body an array of rules, or `{ rules, seed? }`
     * @throws InvalidScript with every problem at once; the earlier rules stay
     */
    replace(body: unknown): void {
      const script = parseScript(body);
      seed = script.seed ?? defaultSeed;
      entries = script.rules.map((rule) => ({
        rule,
        decides: decidesRequests(rule),
        used: 0,
        attempts: new Map(),
        allowed: undefined,
      }));
      for (const listener of listeners) listener();
    },

    /** The unchanged rules, each with `used`: how many requests or connections it has decided. */
    show: () => ({ seed, rules: entries.map(({ rule, used }) => ({ ...rule, used })) }),

    /**
     * The first matching rule, counted as used; undefined: answer as the provider would.
     * @param alias another name of the same device, which a prefix may match
     */
    match(provider: ScriptTarget, token: string, alias?: string): Rule | undefined {
      for (const [index, entry] of entries.entries()) {
        if (!entry.decides || spent(entry) || !concerns(entry, provider)) continue;
        const { tokenPrefix } = entry.rule;
        if (tokenPrefix !== undefined && !token.startsWith(tokenPrefix) && !alias?.startsWith(tokenPrefix)) continue;
        if (!inShare(entry, index, token) || !isBeyond(entry)) continue;
        entry.used += 1;
        return entry.rule;
      }
      return undefined;
    },

    /** The rule that requires a GOAWAY after the `streams`th stream of a connection, counted as used. */
    goaway(provider: ScriptTarget, streams: number): Rule | undefined {
      for (const entry of entries) {
        const { goaway } = entry.rule;
        if (goaway === undefined || spent(entry) || !concerns(entry, provider)) continue;
        if (streams % goaway !== 0) return undefined;
        // A rule that also decides requests counts the requests instead.
        if (!entry.decides) entry.used += 1;
        return entry.rule;
      }
      return undefined;
    },

    oneStreamStart: (provider: ScriptTarget): boolean =>
      entries.some((entry) => entry.rule.oneStreamStart === true && concerns(entry, provider)),

    /** @returns a function that ends the subscription */
    onChange(listener: () => void): () => void {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
}

export type Script = ReturnType<typeof createScript>;
