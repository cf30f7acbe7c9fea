import { type Bus, handleRequest } from "@herald/bus";
import { audienceRequests, type Platform, type ProjectId, type Recipient } from "@herald/contracts";
import { HeraldError } from "@herald/kit";

type Known = { readonly platform?: Platform; readonly devices: readonly Recipient[] };

/** Plays registry for requests that resolve the audiences of sends. */
export const handleResolveSends = (bus: Bus) => {
  /** Audiences by target. A missing target is unmatched; `large` has more devices than a small send may have, and over `fatal` a process dies twice, so that
   * the request gets no reply, and then refuses it. */
  const registry = new Map<string, Known | "large" | "fatal">();
  const deaths: PromiseWithResolvers<void>[] = [];
  /** The number of sends in each request. */
  const asked: number[] = [];
  let withheld: Promise<void> | undefined;
  const withheldOf = new Map<ProjectId, Promise<void>>();
  const answering = handleRequest(bus, audienceRequests.resolve, async ({ projectId, sends }) => {
    asked.push(sends.length);
    await Promise.all([withheld, withheldOf.get(projectId)]);
    if (sends.some(({ targets }) => targets.some((target) => registry.get(target) === "fatal"))) {
      if (deaths.length === 2) throw new HeraldError("process-crashed", "3 processes ended");
      const death = Promise.withResolvers<void>();
      deaths.push(death);
      await death.promise;
    }
    return {
      sends: sends.map(({ targets }) => {
        const found = targets.map((target) => registry.get(target));
        if (found.includes("large")) return null;
        const batches = found.flatMap((known) =>
          typeof known !== "object"
            ? []
            : [{ platform: known.platform ?? ("ios" as const), devices: [...known.devices] }],
        );
        return { batches, unmatched: targets.filter((target) => !registry.has(target)) };
      }),
    };
  });
  const endDeaths = () => {
    for (const { resolve } of deaths.splice(0)) resolve();
  };
  return {
    registry,
    asked,
    /** Delays all responses until the promise resolves. */
    withhold(until: Promise<void>) {
      withheld = until;
    },
    /** Delays the responses of a project. */
    withholdOf(projectId: ProjectId, until: Promise<void>) {
      withheldOf.set(projectId, until);
    },
    reset() {
      registry.clear();
      asked.length = 0;
      withheld = undefined;
      withheldOf.clear();
      endDeaths();
    },
    stop: async () => {
      endDeaths();
      await answering.stop();
    },
  };
};

export type RegistryFixture = ReturnType<typeof handleResolveSends>;
