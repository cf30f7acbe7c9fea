import type { ProjectId, Provider } from "@herald/contracts";
import { HeraldError, type Logger, LRUCache, UnknownMasterKey } from "@herald/kit";
import type { Outcome } from "../domain/outcome.ts";
import type { DispatchMetrics } from "../metrics.ts";
import type { CredentialDocument, CredentialStore } from "../stores/credential-store.ts";
import { acceptsCredential, type CredentialDoubt, createCredentialDoubt } from "./credential-doubt.ts";
import type { ProviderClient } from "./provider-client.ts";
import { createProviderProblems, credentialRoute, freshProblems, unproven } from "./provider-problems.ts";
import { createProviderRoutes, type RoutePermit } from "./provider-routes.ts";
import { createTrials } from "./trials.ts";

export type ProviderState =
  | { readonly kind: "ready"; readonly channel: Channel }
  | { readonly kind: "not-configured" }
  /** `nextTrialAt`: when a push is tried. */
  | { readonly kind: "paused"; readonly nextTrialAt?: Date };

export type PoolDeps = {
  readonly credentials: Pick<CredentialStore, "find" | "open" | "block" | "claimTrial" | "pause" | "prove" | "report">;
  readonly connect: (provider: Provider, settings: unknown) => ProviderClient;
  /** Requests of one project to one provider that may be in flight. */
  readonly inFlight: number;
  /** The limit of requests in flight until the provider has accepted the credential. */
  readonly unproven: number;
  /** Clients that are kept open. Beyond this number, the least recently used one is closed. */
  readonly clients: number;
  readonly metrics: Pick<DispatchMetrics, "breaker" | "unreached">;
  readonly now: () => Date;
  readonly log: Logger;
};

const settingsMaxAgeMs = 1_000;
/** What a provider refuses for minutes it refuses again within this time. */
const contradictedMs = 600_000;
/** Longer than any pause between the batches of one notification. */
const idleMs = 600_000;
const idleCheckMs = 60_000;
/** Routes whose shared throttle is remembered. Beyond this number all are dropped, and the next throttles are written again. */
const maxShared = 64;
/** Results of lookups that are kept, also of projects without the provider. */
const maxLookups = 10_000;

/** The clients of all projects. Settings are looked up at most once a second; a new version gets a new client. */
export const createProviderPool = (deps: PoolDeps) => {
  const { credentials, now, log } = deps;
  const lookups = new LRUCache<string, ProviderState, Of>({
    max: maxLookups,
    ttl: settingsMaxAgeMs,
    ttlResolution: 0,
    perf: { now: () => now().getTime() },
    // A change during a read forgets the key: then the result is returned, and not kept.
    ignoreFetchAbort: true,
    fetchMethod: async (key, _, { context: { projectId, provider } }) =>
      toLookup(key, await credentials.find(projectId, provider)),
  });
  const open = new Map<string, Channel>();
  const closing = new Set<Promise<void>>();

  const close = (key: string, channel: Channel) => {
    open.delete(key);
    lookups.delete(key);
    const done = channel
      .close()
      .catch((err: unknown) => log.warn({ err, provider: channel.provider }, "a provider's client did not close"))
      .finally(() => closing.delete(done));
    closing.add(done);
  };

  const evict = () => {
    const at = now().getTime();
    const idle = [...open]
      .filter(([, { usage }]) => usage.inFlight === 0)
      .sort(([, a], [, b]) => a.usage.usedAt - b.usage.usedAt);
    for (const [key, channel] of idle)
      if (open.size > deps.clients || at - channel.usage.usedAt > idleMs) close(key, channel);
  };
  const timer = setInterval(evict, idleCheckMs);
  timer.unref();

  const toLookup = async (key: string, document: CredentialDocument | null): Promise<ProviderState> => {
    const current = open.get(key);
    if (current && current.version !== document?.version) close(key, current);
    if (!document) return { kind: "not-configured" };
    const { nextTrialAt } = document.paused ?? {};
    if (document.paused) return { kind: "paused", ...(nextTrialAt && { nextTrialAt }) };
    const channel = await channelOf(document);
    return channel ? { kind: "ready", channel } : { kind: "paused" };
  };

  /** The channel of the stored version. Undefined when the settings cannot be used. */
  const channelOf = async (document: CredentialDocument): Promise<Channel | undefined> => {
    const key = `${document.projectId}/${document.provider}`;
    const current = open.get(key);
    const channel = current?.version === document.version ? current : await connect(document);
    if (!channel) return undefined;
    open.set(key, channel);
    channel.usage.usedAt = now().getTime();
    for (const { route, until } of document.throttles ?? [])
      if (until > now()) channel.routes.throttle(route, until.getTime());
    evict();
    return channel;
  };

  /** Creates the client. If the settings cannot be used, pauses the provider until new settings are put, and resolves to undefined. */
  const connect = async (document: CredentialDocument): Promise<Channel | undefined> => {
    const { projectId, provider } = document;
    try {
      return createChannel(deps, document, deps.connect(provider, await credentials.open(document)));
    } catch (err) {
      // The operator must fix this, not the project, so deliveries wait.
      if (err instanceof UnknownMasterKey) throw new HeraldError("service-unavailable", err.message, { cause: err });
      log.error({ err, projectId, provider }, "the provider's settings cannot be used, so it is paused");
      await credentials.pause(document, { reason: "settings-unusable", providerReason: "" }, now());
      return undefined;
    }
  };

  const forget = (projectId: ProjectId, provider: Provider): void => {
    lookups.delete(`${projectId}/${provider}`);
  };

  return {
    trials: createTrials({ credentials, channelOf, forget, now }),
    /** The result is at most a second old. Concurrent callers share a read. Throws `database-unavailable`. */
    lookup: (projectId: ProjectId, provider: Provider): Promise<ProviderState> =>
      lookups.forceFetch(`${projectId}/${provider}`, { context: { projectId, provider } }),
    /** Whether the provider has refused this version of the settings in this process. The pause may not be stored yet. */
    refused: ({ projectId, provider, version }: Version): boolean => {
      const channel = open.get(`${projectId}/${provider}`);
      return channel?.version === version && channel.refused();
    },
    /** Drops cached settings after a change: the next lookup reads them. */
    forget,
    close: async () => {
      clearInterval(timer);
      for (const [key, channel] of [...open]) close(key, channel);
      await Promise.all(closing);
    },
  };
};

export type ProviderPool = ReturnType<typeof createProviderPool>;

type Of = Pick<CredentialDocument, "projectId" | "provider">;
type Version = Pick<CredentialDocument, "projectId" | "provider" | "version">;

type ChannelDeps = Pick<PoolDeps, "credentials" | "inFlight" | "log" | "metrics" | "now" | "unproven">;

/** One version of a project's settings for a provider, ready to send with. */
const createChannel = (
  { inFlight, unproven: unprovenInFlight, credentials, metrics, now, log }: ChannelDeps,
  document: CredentialDocument,
  client: ProviderClient,
) => {
  const { projectId, provider, version } = document;
  const usage = { inFlight: 0, usedAt: now().getTime() };
  const known = freshProblems(document, now()).map(({ route }) => route);
  const problems = createProviderProblems({ projectId, provider, version, credentials, known, now, log });
  const ownRoutes = createProviderRoutes({
    now: () => now().getTime(),
    knownUnreached: known,
    // Failures of servers that only devices name are in the traces of these devices. Here they would hide the provider's own.
    unreached: (route, problem) => {
      if (client.isNamedByDevice(route)) return;
      metrics.unreached(provider, problem.reason);
      problems.found(route, problem);
    },
    reached: problems.over,
    changed: (change, route, reason) => {
      metrics.breaker(provider, change);
      const facts = { projectId, provider, ...(route === "" ? {} : { route }) };
      if (change === "opened")
        log.warn(
          { ...facts, providerReason: reason },
          "pushes to this server wait, because it fails, limits them or cannot be reached",
        );
      if (change === "closed") log.info(facts, "pushes to this server do not wait any more");
    },
  });
  let doubt: CredentialDoubt | undefined;
  /** When the provider last accepted the credential although it had refused it. */
  let contradictedAt = Number.NEGATIVE_INFINITY;
  const isContradicted = (): boolean => Math.abs(now().getTime() - contradictedAt) < contradictedMs;
  type Routes = typeof ownRoutes;
  /** While the credential is in doubt, no route is open. */
  const routes: Routes = {
    ...ownRoutes,
    blockedUntil: (name, device) => doubt?.blockedUntil() ?? ownRoutes.blockedUntil(name, device),
    anyBlocked: () => doubt !== undefined || ownRoutes.anyBlocked(),
    acquire: (name, device) => (doubt ?? ownRoutes).acquire(name, device),
    failureOf: (name) => doubt?.reason ?? ownRoutes.failureOf(name),
  };
  const waiting: { count: number; go: () => void }[] = [];
  let proven = document.provenAt !== undefined;
  let refused = false;
  /** By route: the end of the throttle that is stored in the database. */
  const shared = new Map<string, number>();

  const admit = () => {
    for (let next = waiting[0]; next; next = waiting[0]) {
      const limit = proven ? inFlight : unprovenInFlight;
      // A count of 0 waits until no request is in flight.
      const fits =
        next.count === 0 ? usage.inFlight === 0 : usage.inFlight === 0 || usage.inFlight + next.count <= limit;
      if (!fits) return;
      waiting.shift();
      usage.inFlight += next.count;
      next.go();
    }
  };

  const warn = (what: string) => (err: unknown) => log.warn({ err, provider }, what);

  const reserve = (count: number): Promise<void> =>
    new Promise((go) => {
      waiting.push({ count, go });
      admit();
    });

  return {
    projectId,
    provider,
    version,
    client,
    usage,
    /** Whether the provider refuses the credential, so that nothing may be sent with it. */
    refused: () => refused,
    /** The provider's servers. A server that throttles or fails blocks only the pushes to it. */
    routes,
    /** Waits until `count` more requests may be in flight. Each must be returned with `release`. */
    reserve,
    release: (count: number) => {
      usage.inFlight -= count;
      // `usedAt` is read only for clients without requests in flight.
      if (usage.inFlight === 0) usage.usedAt = now().getTime();
      admit();
    },
    /** A server accepted the credential, so it may be used at full concurrency. Stored for other processes. */
    prove: (route: string) => {
      // A server that only devices name may accept any credential.
      if (proven || client.isNamedByDevice(route)) return;
      proven = true;
      problems.over(credentialRoute);
      admit();
      credentials
        .prove({ projectId, provider, version }, now())
        .catch(warn("could not tell other replicas that the provider accepts the credential"));
    },
    /** A server refused the credential for a device, which may belong to another app. */
    onTokenMismatch: (route: string, providerReason: string) => {
      if (!proven && !client.isNamedByDevice(route)) problems.found(credentialRoute, unproven(providerReason));
    },
    /** The push of this permit decides a doubt about the credential. */
    isSecond: (permit: RoutePermit): boolean => doubt?.isSecond(permit) === true,
    /**
     * The provider refused the credential for a push. `"confirmed"`: as for the second in a row, so this process sends nothing more with
     * it. `"unconfirmed"`: the push waits. `isAttempt`: the provider has lately accepted what it had refused, so it may mean this push
     * alone, which must not be tried for ever.
     */
    onRefusal: (permit: RoutePermit, reason: string) => {
      if (refused) return { kind: "confirmed" } as const;
      if (doubt?.isSecond(permit)) {
        const { since } = doubt;
        doubt = undefined;
        refused = true;
        return { kind: "confirmed", since } as const;
      }
      doubt ??= createCredentialDoubt({
        reason,
        now: () => now().getTime(),
        acquire: ownRoutes.acquire,
        renewToken: () => client.renewToken(doubt?.since ?? now()),
      });
      const until = new Date(doubt.blockedUntil() ?? now());
      return { kind: "unconfirmed", until, isAttempt: isContradicted() } as const;
    },
    /** The second push got another answer than a refusal of the credential; undefined: none. */
    onSecondAnswer: (outcome: Outcome | undefined) => {
      if (outcome && acceptsCredential(outcome)) contradictedAt = now().getTime();
      else if (!doubt?.undecided()) return;
      doubt = undefined;
    },
    /** The pause is stored: whether pushes may be sent is decided there now. */
    pauseStored: () => {
      refused = false;
    },
    /** A server sent Retry-After: this process sends nothing to it before `until`. Other processes follow within a second. */
    throttle: (route: string, until: Date) => {
      if (!routes.throttle(route, until.getTime())) return;
      // Responses to one burst have nearly the same Retry-After.
      if (until.getTime() - (shared.get(route) ?? 0) < settingsMaxAgeMs) return;
      if (shared.size >= maxShared) shared.clear();
      shared.set(route, until.getTime());
      credentials
        .block({ projectId, provider, route, until }, now())
        .catch(warn("could not share the provider's Retry-After with other replicas"));
    },
    close: async (): Promise<void> => {
      routes.close();
      problems.close();
      // Wait for the responses to requests in flight; each request has its own timeout.
      while (usage.inFlight > 0) await reserve(0);
      await client.close();
    },
  };
};

export type Channel = ReturnType<typeof createChannel>;
