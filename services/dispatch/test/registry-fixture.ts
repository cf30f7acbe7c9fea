import { type Bus, handleRequest } from "@herald/bus";
import { type Platform, type Recipient, ResolveSends } from "@herald/contracts";

type Known = { readonly platform?: Platform; readonly devices: readonly Recipient[] };

/** Plays registry for requests that resolve the audiences of sends. */
export const handleResolveSends = (bus: Bus) => {
  /** Audiences by target. A missing target is unmatched; `large` has more devices than a small send may have. */
  const registry = new Map<string, Known | "large">();
  /** The number of sends in each request. */
  const asked: number[] = [];
  let withheld: Promise<void> | undefined;
  const answering = handleRequest(bus, ResolveSends, async ({ sends }) => {
    asked.push(sends.length);
    await withheld;
    return {
      sends: sends.map(({ targets }) => {
        const found = targets.map((target) => registry.get(target));
        if (found.includes("large")) return null;
        const batches = found.flatMap((known) =>
          known === undefined || known === "large"
            ? []
            : [{ platform: known.platform ?? ("ios" as const), devices: [...known.devices] }],
        );
        return { batches, unmatched: targets.filter((target) => !registry.has(target)) };
      }),
    };
  });
  return {
    registry,
    asked,
    /** Delays all responses until the promise resolves. */
    withhold(until: Promise<void>) {
      withheld = until;
    },
    reset() {
      registry.clear();
      asked.length = 0;
      withheld = undefined;
    },
    stop: answering.stop,
  };
};

export type RegistryFixture = ReturnType<typeof handleResolveSends>;
