import { decidesRequests, parseScript, type Rule, type ScriptTarget } from "./rule.ts";

/** Any fixed number would do: what matters is that two runs draw the same. */
const defaultSeed = 1;

/** A rule with how often it was used. */
interface Entry {
  readonly rule: Rule;
  readonly decides: boolean;
  used: number;
  /** Attempts per token, kept for rules with a share only. */
  readonly attempts: Map<string, number>;
}

/** FNV-1a with a final avalanche (murmur3's): close inputs must not draw close numbers. */
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

/** What the simulators were told to answer: none, and every correct request is accepted. */
export function createScript() {
  let entries: Entry[] = [];
  let seed = defaultSeed;
  const listeners = new Set<() => void>();

  /**
   * Drawn from seed, rule, token and how often that token was tried, so neither the order of arrival nor the timing
   * changes who is hit, and a retry may fare better.
   */
  const inShare = (entry: Entry, index: number, token: string) => {
    const { share } = entry.rule;
    if (share === undefined) return true;
    const attempt = entry.attempts.get(token) ?? 0;
    entry.attempts.set(token, attempt + 1);
    return draw(`${seed}/${index}/${token}/${attempt}`) < share;
  };

  return {
    /**
     * Replaces all rules; counts start again.
     * @param body an array of rules, or `{ rules, seed? }`
     * @throws InvalidScript with every problem at once; the rules before it stay
     */
    replace(body: unknown): void {
      const script = parseScript(body);
      seed = script.seed ?? defaultSeed;
      entries = script.rules.map((rule) => ({ rule, decides: decidesRequests(rule), used: 0, attempts: new Map() }));
      for (const listener of listeners) listener();
    },

    /** The rules as given, each with `used`: how many requests or connections it has decided. */
    show: () => ({ seed, rules: entries.map(({ rule, used }) => ({ ...rule, used })) }),

    /**
     * The first rule that matches, counted as used; undefined: answer as the provider would.
     * @param alias another name of the same device that a prefix may match
     */
    match(provider: ScriptTarget, token: string, alias?: string): Rule | undefined {
      for (const [index, entry] of entries.entries()) {
        if (!entry.decides || spent(entry) || !concerns(entry, provider)) continue;
        const { tokenPrefix } = entry.rule;
        if (tokenPrefix !== undefined && !token.startsWith(tokenPrefix) && !alias?.startsWith(tokenPrefix)) continue;
        if (!inShare(entry, index, token)) continue;
        entry.used += 1;
        return entry.rule;
      }
      return undefined;
    },

    /** The rule that wants a GOAWAY after the `streams`th stream of a connection, counted as used. */
    goaway(provider: ScriptTarget, streams: number): Rule | undefined {
      for (const entry of entries) {
        const { goaway } = entry.rule;
        if (goaway === undefined || spent(entry) || !concerns(entry, provider)) continue;
        if (streams % goaway !== 0) return undefined;
        // A rule that decides requests too counts those.
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
