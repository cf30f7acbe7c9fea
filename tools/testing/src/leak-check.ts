import { eventually } from "./eventually.ts";

/** The handles that a test leaks when it does not stop something, by Node's names. */
const watchedHandles = ["TCPServerWrap", "TCPSocketWrap", "ProcessWrap"];

/**
 * Counts the open servers, connections and child processes of this process. The returned function throws if there are more of them now.
 * Call `leakCheck` before the first fixture of a test, and the returned function after the last has stopped.
 */
export function leakCheck({ timeoutMs = 20_000 }: { readonly timeoutMs?: number } = {}): () => Promise<void> {
  const before = watchedHandles.map(countOpen);
  return () =>
    eventually(
      () => {
        const more = watchedHandles.map((kind, at) => ({ kind, count: countOpen(kind) - (before[at] ?? 0) }));
        const leaked = more.filter(({ count }) => count > 0).map(({ kind, count }) => `${count} ${kind}`);
        if (leaked.length > 0) throw new Error(`left open: ${leaked.join(", ")}`);
      },
      { timeoutMs }, // a socket that was closed may need a moment for its last packet, and longer on a busy machine
    );
}

const countOpen = (kind: string): number =>
  process.getActiveResourcesInfo().filter((resource) => resource === kind).length;
