import type { Provider, ProviderProblemReason } from "@herald/contracts";
import { meter, secondsHistogram } from "@herald/kit";
import type { Outcome } from "./domain/outcome.ts";

/** What dispatch measures. Added up for each batch: a device costs no call. Labels are providers and outcomes, never ids. */
export type DispatchMetrics = {
  sent(provider: Provider, outcomes: readonly (Outcome | undefined)[], seconds: number): void;
  paused(provider: Provider): void;
  /** A circuit breaker of some project's provider. */
  breaker(provider: Provider, change: "opened" | "reopened" | "closed"): void;
  /** A push found that a server of the provider's own is not reached. */
  unreached(provider: Provider, reason: ProviderProblemReason): void;
  spike(): void;
};

/** Made when the app is: a meter asked for before telemetry has started records nothing for ever. */
export const createMetrics = (): DispatchMetrics => {
  const pushes = meter().createCounter("herald.dispatch.pushes", { description: "Answers of providers, by outcome" });
  const batches = secondsHistogram("herald.dispatch.batch.seconds", "From a batch's first request to its last answer");
  const pauses = meter().createCounter("herald.dispatch.provider.pauses", {
    description: "Providers paused because they refuse a project's credential",
  });
  const spikes = meter().createCounter("herald.dispatch.spikes", {
    description: "Notifications with so many dead tokens that none was believed",
  });
  const openings = meter().createCounter("herald.dispatch.breaker.openings", {
    description: "Circuit breakers that opened, by provider",
  });
  const unreached = meter().createCounter("herald.dispatch.unreachable", {
    description: "Pushes that could not be sent because a provider's own server was not reached, by reason",
  });
  const open = meter().createUpDownCounter("herald.dispatch.breakers.open", {
    description: "Servers of projects' providers whose circuit breaker is open",
  });
  return {
    sent: (provider, outcomes, seconds) => {
      const counts = new Map<string, number>();
      for (const outcome of outcomes) {
        const kind = outcome?.kind ?? "not_sent";
        counts.set(kind, (counts.get(kind) ?? 0) + 1);
      }
      for (const [outcome, count] of counts) pushes.add(count, { provider, outcome });
      batches.record(seconds, { provider });
    },
    paused: (provider) => pauses.add(1, { provider }),
    breaker: (provider, change) => {
      if (change !== "closed") openings.add(1, { provider });
      if (change !== "reopened") open.add(change === "opened" ? 1 : -1, { provider });
    },
    unreached: (provider, reason) => unreached.add(1, { provider, reason }),
    spike: () => spikes.add(1),
  };
};
