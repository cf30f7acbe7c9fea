import type { Provider, ProviderProblemReason } from "@herald/contracts";
import { meter, secondsHistogram } from "@herald/kit";
import type { Outcome } from "./domain/outcome.ts";

/**
 * Metrics of dispatch, recorded once per batch, not per device. Labels are providers and outcomes, never ids.
 * Called with the app, not on import: a meter requested before telemetry starts never records anything.
 */
export const createMetrics = () => {
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
    description: "Servers of projects' providers that fail, cannot be reached or limit Herald, so that pushes wait",
  });
  const waiting = meter().createGauge("herald.dispatch.backlog.sends", {
    description: "Sends to few devices that wait for their project's turn",
  });
  const age = meter().createGauge("herald.dispatch.backlog.age.seconds", {
    description: "How long ago the oldest of them was accepted",
  });
  const pausedSends = meter().createGauge("herald.dispatch.paused", {
    description: "Projects whose sends are paused; 1 for the installation if all are",
  });
  return {
    pausedSends: (projects: number, all: boolean) => {
      pausedSends.record(projects, { scope: "project" });
      pausedSends.record(all ? 1 : 0, { scope: "installation" });
    },
    /** How many sends wait in backlogs, and for how many seconds the oldest has waited. */
    backlogs: (sends: number, seconds: number) => {
      waiting.record(sends);
      age.record(seconds);
    },
    sent: (provider: Provider, outcomes: readonly (Outcome | undefined)[], seconds: number) => {
      const counts = new Map<string, number>();
      for (const outcome of outcomes) {
        const kind = outcome?.kind ?? "not_sent";
        counts.set(kind, (counts.get(kind) ?? 0) + 1);
      }
      for (const [outcome, count] of counts) pushes.add(count, { provider, outcome });
      batches.record(seconds, { provider });
    },
    paused: (provider: Provider) => pauses.add(1, { provider }),
    /** A circuit breaker of a project's provider changed. */
    breaker: (provider: Provider, change: "opened" | "reopened" | "closed") => {
      if (change !== "closed") openings.add(1, { provider });
      if (change !== "reopened") open.add(change === "opened" ? 1 : -1, { provider });
    },
    /** A push could not reach one of the provider's own servers. */
    unreached: (provider: Provider, reason: ProviderProblemReason) => unreached.add(1, { provider, reason }),
    spike: () => spikes.add(1),
  };
};

export type DispatchMetrics = ReturnType<typeof createMetrics>;
