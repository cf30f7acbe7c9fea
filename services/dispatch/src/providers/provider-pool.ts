import type { ProjectId, Provider } from "@herald/contracts";
import { HeraldError, type Logger, UnknownMasterKey } from "@herald/kit";
import type { DispatchMetrics } from "../metrics.ts";
import type { CredentialDocument, CredentialStore } from "../stores/credential-store.ts";
import type { ProviderClient } from "./provider-client.ts";
import {
  createProviderProblems,
  credentialRoute,
  freshProblems,
  type ProviderProblems,
  unproven,
} from "./provider-problems.ts";
import { createProviderRoutes, type ProviderRoutes } from "./provider-routes.ts";

/** One version of a project's settings for a provider, ready to send with. */
export type Channel = {
  readonly projectId: ProjectId;
  readonly provider: Provider;
  readonly version: string;
  readonly client: ProviderClient;
  /** The provider refuses the credential, so nothing may be sent with it. */
  refused(): boolean;
  /** The provider's servers: one that throttles or fails blocks only the pushes to it. */
  readonly routes: Pick<
    ProviderRoutes,
    "blockedUntil" | "failureOf" | "acquire" | "onSuccess" | "onFailure" | "release" | "anyBlocked"
  >;
  /** Waits until so many more requests may be in flight. `release` returns each of them. */
  reserve(count: number): Promise<void>;
  release(count: number): void;
  /** A server took the credential, so that it may be used at full width. Remembered beyond this process. */
  prove(route: string): void;
  /** A server did not take the credential for a device that may be another app's. */
  onTokenMismatch(route: string, providerReason: string): void;
  /** The provider refuses the credential: nothing more is sent with it from here. */
  refuse(): void;
  /** A server asked to wait: nothing is sent to it before `until`, from here at once, from other processes within a second. */
  throttle(route: string, until: Date): void;
};

export type Lookup =
  | { readonly kind: "ready"; readonly channel: Channel }
  | { readonly kind: "not-configured" }
  | { readonly kind: "paused" };

export type ProviderPool = {
  /** At most a second old. Throws database-unavailable. */
  lookup(projectId: ProjectId, provider: Provider): Promise<Lookup>;
  /** The provider has refused this version of the settings here: the caller writes the pause, if that is not done yet. */
  refused(settings: Pick<CredentialDocument, "projectId" | "provider" | "version">): boolean;
  /** Settings have changed here: the next look-up reads them. */
  forget(projectId: ProjectId, provider: Provider): void;
  close(): Promise<void>;
};

export type PoolDeps = {
  readonly credentials: Pick<CredentialStore, "find" | "open" | "block" | "pause" | "prove" | "report">;
  readonly connect: (provider: Provider, settings: unknown) => ProviderClient;
  /** Requests of one project to one provider that wait for an answer at a time. */
  readonly inFlight: number;
  /** Until the provider has taken a credential, so many are risked with it. */
  readonly unproven: number;
  /** Clients that are kept open; beyond it the one that was used longest ago goes. */
  readonly clients: number;
  readonly metrics: Pick<DispatchMetrics, "breaker" | "unreached">;
  readonly now: () => Date;
  readonly log: Logger;
};

const freshMs = 1_000;
/** Longer than any pause between the batches of one notification. */
const idleMs = 600_000;
const idleCheckMs = 60_000;
/** Past this all are forgotten, and written to the database once more. */
const maxShared = 64;

type Open = {
  readonly channel: Channel;
  readonly routes: ProviderRoutes;
  readonly problems: ProviderProblems;
  readonly usage: { inFlight: number; usedAt: number };
};
type Known = { checkedAt: number; lookup: Lookup };

/** The clients of all projects. Settings are looked up at most once a second; a new version gets a new client. */
export const createProviderPool = (deps: PoolDeps): ProviderPool => {
  const { credentials, now, log } = deps;
  const known = new Map<string, Known>();
  const looking = new Map<string, Promise<Lookup>>();
  const open = new Map<string, Open>();
  const closing = new Set<Promise<void>>();

  const close = (key: string, { channel, routes, problems, usage }: Open) => {
    open.delete(key);
    known.delete(key);
    routes.close();
    problems.close();
    const done = (async () => {
      // What was sent gets its answer; each has its own timeout.
      while (usage.inFlight > 0) await channel.reserve(0);
      await channel.client.close();
    })()
      .catch((err: unknown) => log.warn({ err, provider: channel.provider }, "a provider's client did not close"))
      .finally(() => closing.delete(done));
    closing.add(done);
  };

  const evict = () => {
    const at = now().getTime();
    const idle = [...open]
      .filter(([, { usage }]) => usage.inFlight === 0)
      .sort(([, a], [, b]) => a.usage.usedAt - b.usage.usedAt);
    for (const [key, entry] of idle)
      if (open.size > deps.clients || at - entry.usage.usedAt > idleMs) close(key, entry);
  };
  /** Answers without a client: of providers that a project does not have, or that are paused. */
  const forgetOld = () => {
    const at = now().getTime();
    for (const [key, { checkedAt }] of known) if (!open.has(key) && at - checkedAt >= freshMs) known.delete(key);
  };
  const timer = setInterval(() => {
    evict();
    forgetOld();
  }, idleCheckMs);
  timer.unref();

  const read = async (key: string, projectId: ProjectId, provider: Provider): Promise<Lookup> => {
    const at = now().getTime();
    const document = await credentials.find(projectId, provider);
    const lookup = await toLookup(key, document);
    known.set(key, { checkedAt: at, lookup });
    return lookup;
  };

  const toLookup = async (key: string, document: CredentialDocument | null): Promise<Lookup> => {
    const current = open.get(key);
    if (current && current.channel.version !== document?.version) close(key, current);
    if (!document) return { kind: "not-configured" };
    if (document.paused) return { kind: "paused" };
    const entry = open.get(key) ?? (await connect(document));
    if (!entry) return { kind: "paused" };
    open.set(key, entry);
    entry.usage.usedAt = now().getTime();
    for (const { route, until } of document.throttles ?? [])
      if (until > now()) entry.routes.throttle(route, until.getTime());
    evict();
    return { kind: "ready", channel: entry.channel };
  };

  /** Undefined, and the provider paused, when the settings cannot be used: that is for a person to mend. */
  const connect = async (document: CredentialDocument): Promise<Open | undefined> => {
    const { projectId, provider, version } = document;
    let client: ProviderClient;
    try {
      client = deps.connect(provider, await credentials.open(document));
    } catch (err) {
      // The operator's to mend, not the project's: what is to be sent waits.
      if (err instanceof UnknownMasterKey) throw new HeraldError("service-unavailable", err.message, { cause: err });
      log.error({ err, projectId, provider }, "the provider's settings cannot be used, so it is paused");
      await credentials.pause(document, { reason: "settings-unusable", providerReason: "" }, now());
      return undefined;
    }
    const usage = { inFlight: 0, usedAt: now().getTime() };
    const proven = document.provenAt !== undefined;
    const known = freshProblems(document, now()).map(({ route }) => route);
    const problems = createProviderProblems({ projectId, provider, version, credentials, known, now, log });
    const routes = createProviderRoutes({
      now: () => now().getTime(),
      knownUnreached: known,
      // What strangers' servers do is in the traces of their devices: here it would hide what is the provider's.
      unreached: (route, problem) => {
        if (client.isNamedByDevice(route)) return;
        deps.metrics.unreached(provider, problem.reason);
        problems.found(route, problem);
      },
      reached: problems.over,
      changed: (change, route, reason) => {
        deps.metrics.breaker(provider, change);
        const facts = { projectId, provider, ...(route === "" ? {} : { route }) };
        if (change === "opened")
          log.warn({ ...facts, providerReason: reason }, "the circuit breaker opened: pushes to this server wait");
        if (change === "closed") log.info(facts, "the circuit breaker closed: the server answers again");
      },
    });
    const channel = createChannel({
      projectId,
      provider,
      version,
      client,
      usage,
      routes,
      problems,
      proven,
      ...deps,
    });
    return { channel, routes, problems, usage };
  };

  return {
    lookup: (projectId, provider) => {
      const key = `${projectId}/${provider}`;
      const found = known.get(key);
      if (found && now().getTime() - found.checkedAt < freshMs) return Promise.resolve(found.lookup);
      const underWay = looking.get(key) ?? read(key, projectId, provider).finally(() => looking.delete(key));
      looking.set(key, underWay);
      return underWay;
    },
    refused: ({ projectId, provider, version }) => {
      const channel = open.get(`${projectId}/${provider}`)?.channel;
      return channel?.version === version && channel.refused();
    },
    forget: (projectId, provider) => {
      known.delete(`${projectId}/${provider}`);
    },
    close: async () => {
      clearInterval(timer);
      for (const [key, entry] of [...open]) close(key, entry);
      await Promise.all(closing);
    },
  };
};

type ChannelDeps = Pick<Channel, "projectId" | "provider" | "version" | "client"> &
  Pick<PoolDeps, "credentials" | "inFlight" | "unproven" | "now" | "log"> & {
    readonly usage: Open["usage"];
    readonly routes: ProviderRoutes;
    readonly problems: ProviderProblems;
    readonly proven: boolean;
  };

const createChannel = (deps: ChannelDeps): Channel => {
  const { projectId, provider, version, client, usage, routes, problems, credentials, now, log } = deps;
  const waiting: { count: number; go: () => void }[] = [];
  let { proven } = deps;
  let refused = false;
  /** By route, until when the database says that it is throttled. */
  const shared = new Map<string, number>();

  const admit = () => {
    for (let next = waiting[0]; next; next = waiting[0]) {
      const limit = proven ? deps.inFlight : deps.unproven;
      // A count of 0 waits until no request is in flight.
      const fits =
        next.count === 0 ? usage.inFlight === 0 : usage.inFlight === 0 || usage.inFlight + next.count <= limit;
      if (!fits) return;
      waiting.shift();
      usage.inFlight += next.count;
      next.go();
    }
  };

  return {
    projectId,
    provider,
    version,
    client,
    refused: () => refused,
    routes,
    reserve: (count) =>
      new Promise((go) => {
        waiting.push({ count, go });
        admit();
      }),
    release: (count) => {
      usage.inFlight -= count;
      // Only what does not fly is ever asked how long.
      if (usage.inFlight === 0) usage.usedAt = now().getTime();
      admit();
    },
    prove: (route) => {
      // A stranger's server takes whatever it likes.
      if (proven || client.isNamedByDevice(route)) return;
      proven = true;
      problems.over(credentialRoute);
      admit();
      credentials
        .prove({ projectId, provider, version }, now())
        .catch((err: unknown) =>
          log.warn({ err, provider }, "could not tell other replicas that the provider accepts the credential"),
        );
    },
    onTokenMismatch: (route, providerReason) => {
      if (!proven && !client.isNamedByDevice(route)) problems.found(credentialRoute, unproven(providerReason));
    },
    refuse: () => {
      refused = true;
    },
    throttle: (route, until) => {
      if (!routes.throttle(route, until.getTime())) return;
      // Answers to the same burst ask for nearly the same.
      if (until.getTime() - (shared.get(route) ?? 0) < freshMs) return;
      if (shared.size >= maxShared) shared.clear();
      shared.set(route, until.getTime());
      credentials
        .block({ projectId, provider, route, until }, now())
        .catch((err: unknown) =>
          log.warn({ err, provider }, "could not share the provider's Retry-After with other replicas"),
        );
    },
  };
};
