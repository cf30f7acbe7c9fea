import { eventually } from "./eventually.ts";

/** The handles that a test leaks when it does not stop something, by Node's names. */
const watchedHandles = ["TCPServerWrap", "TCPSocketWrap", "ProcessWrap"] as const;

/**
 * Counts the open servers, connections and child processes of this process. The returned function throws if there are more of them now.
 * Call `leakCheck` before the first fixture of a test, and the returned function after the last has stopped.
 */
export function leakCheck(): () => Promise<void> {
  const before = countWatched();
  return () =>
    eventually(
      () => {
        const now = countWatched();
        const leaked = watchedHandles.filter((kind) => now[kind] > before[kind]);
        if (leaked.length === 0) return;
        throw new Error(`left open: ${leaked.map((kind) => `${now[kind] - before[kind]} ${kind}`).join(", ")}`);
      },
      { timeoutMs: 2_000 }, // a socket that was closed may need a moment for its last packet
    );
}

function countWatched(): Record<(typeof watchedHandles)[number], number> {
  const active = process.getActiveResourcesInfo();
  const count = (kind: string) => active.filter((resource) => resource === kind).length;
  return {
    TCPServerWrap: count("TCPServerWrap"),
    TCPSocketWrap: count("TCPSocketWrap"),
    ProcessWrap: count("ProcessWrap"),
  };
}
