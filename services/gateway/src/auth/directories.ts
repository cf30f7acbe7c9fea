import { hash, timingSafeEqual } from "node:crypto";
import { type Bucket, type Bus, openBucket } from "@herald/bus";
import {
  type BucketName,
  isOperatorToken,
  isProjectToken,
  type OperatorRecord,
  type Platform,
  type ProjectId,
  type ProjectRecord,
  type Provider,
  type ProvidersRecord,
  projectProvidersKey,
  projectRulesKey,
  projectSettingsKey,
  providerOf,
  type RulesRecord,
  type SubscriptionKeys,
  secretHash,
  type TokenRecord,
  tokenKey,
  vapidKeyId,
} from "@herald/contracts";
import { endpointProblem, HeraldError, meter, notFound } from "@herald/kit";
import type { z } from "zod";
import type { ActingOperator } from "./caller.ts";
import type { RateLimits } from "./rate-limits.ts";

/** A bucket replicated into memory by a watch. */
export type BucketReplica<Value> = ReturnType<typeof replicateBucket<z.ZodType<Value>>>;

/** Replicates a bucket. Empty until started, while `bus` throws bus-unavailable. */
export const replicateBucket = <Schema extends z.ZodType>(
  name: BucketName,
  schema: Schema,
  bus: () => Bus,
  keys?: string,
) => {
  type Value = z.output<Schema>;
  const known = new Map<string, Value>();
  let watching: ReturnType<Bucket<Value>["watch"]> | undefined;
  return {
    get: (key: string) => known.get(key),
    entries: () => known.entries(),
    /**
     * Reads a key from the bus if it is not in memory, so that a record works as soon as it is written. `permit` may refuse the read.
     * Throws bus-unavailable.
     */
    fetch: async (key: string, permit: () => Promise<void>): Promise<Value | undefined> => {
      const bucket = openBucket(bus(), name, schema);
      await permit();
      return (await bucket.get(key))?.value;
    },
    /** True when all records were received and the connection is up. */
    ready: (): boolean => watching?.ready() ?? false,
    /** Starts the watch. */
    start: (connected: Bus) => {
      const onEntry: Parameters<Bucket<Value>["watch"]>[0] = ({ key, value }) => {
        if (value === undefined) known.delete(key);
        else known.set(key, value);
      };
      watching = openBucket(connected, name, schema).watch(onEntry, undefined, keys === undefined ? {} : { keys });
    },
    stop: async () => watching?.stop(),
  };
};

/** The record of a credential. A new one must work before it is replicated: reading it counts against the address meanwhile. */
export const readRecord = async <Value>(
  replica: BucketReplica<Value>,
  limits: Pick<RateLimits, "countWhileVerifying" | "countLookup">,
  key: string,
  address: string,
): Promise<Value | undefined> =>
  replica.get(key) ?? limits.countWhileVerifying(address, () => replica.fetch(key, limits.countLookup));

export type TokenDirectory = ReturnType<typeof createTokenDirectory>;

/**
 * Project tokens by their hash. A lookup by hash needs no constant-time comparison: timing could only reveal the hash, and no token can
 * be derived from it.
 */
export const createTokenDirectory = (replica: BucketReplica<TokenRecord>, limits: RateLimits, now: () => Date) => ({
  /** The record of a project token; undefined when it is malformed, unknown, revoked or expired. */
  find: async (token: string, address: string) => {
    const key = tokenKey(secretHash(token));
    // A replicated token needs no other check.
    if (replica.get(key) === undefined && !isProjectToken(token)) return undefined;
    const record = await readRecord(replica, limits, key, address);
    const expired = record?.expiresAt !== undefined && Date.parse(record.expiresAt) <= now().getTime();
    return expired ? undefined : record;
  },
});

const digest = (text: string): Buffer => hash("sha256", text, "buffer");

type Rights = Pick<ActingOperator, "role" | "projects">;

export type OperatorDirectory = ReturnType<typeof createOperatorDirectory>;

/** Operators by the hash of their token, and the holder of HERALD_ADMIN_TOKEN as `root`. */
export const createOperatorDirectory = (
  adminToken: string,
  replica: BucketReplica<OperatorRecord>,
  limits: RateLimits,
  /** Adds the rights of groups. */
  rightsOf: (own: Rights, groups: readonly string[] | undefined) => Rights,
) => {
  const rootRequests = meter().createCounter("herald.gateway.root_requests", {
    description: "Requests with HERALD_ADMIN_TOKEN or a session of it",
  });
  const adminDigest = digest(adminToken);
  const root: ActingOperator = {
    id: "root",
    name: "root",
    role: "admin",
    projects: [],
    tokenHash: secretHash(adminToken),
  };
  const read = async (tokenHash: string, address: string): Promise<ActingOperator | undefined> => {
    const record = await readRecord(replica, limits, tokenHash, address);
    return record && { ...record, ...rightsOf(record, record.groups), tokenHash };
  };
  const asRoot = (): ActingOperator => {
    rootRequests.add(1);
    return root;
  };
  return {
    /** The operator of a token; undefined when it is unknown or replaced, or its operator was deleted. */
    find: async (token: string, address: string) => {
      if (timingSafeEqual(digest(token), adminDigest)) return asRoot();
      return isOperatorToken(token) ? read(secretHash(token), address) : undefined;
    },
    /** The operator whose current token has this hash, with its current role. */
    findByHash: async (tokenHash: string, address: string) =>
      tokenHash === root.tokenHash ? asRoot() : read(tokenHash, address),
  };
};

const platforms = Object.keys(providerOf) as Platform[];

export type ProjectDirectory = ReturnType<typeof createProjectDirectory>;

/** What the gateway knows of projects. */
type ProjectReplicas = {
  readonly settings: BucketReplica<ProjectRecord>;
  readonly rules: BucketReplica<RulesRecord>;
  readonly providers: BucketReplica<ProvidersRecord>;
};

/** The gateway's knowledge about projects, available even while every database is unavailable. */
export const createProjectDirectory = ({ settings, rules, providers }: ProjectReplicas, limits: RateLimits) => ({
  /** A project's settings. Throws project-not-found. */
  settings: async (id: ProjectId) => {
    const key = projectSettingsKey(id);
    const record = settings.get(key) ?? (await settings.fetch(key, limits.countLookup));
    if (record === undefined) throw notFound("project-not-found", "project");
    return record;
  },
  /** The keys that browsers may subscribe with; undefined when the project has no Web Push. `fresh` reads from the bus. */
  vapidKeys: async (id: ProjectId, fresh = false) => {
    const key = projectProvidersKey(id);
    return (fresh ? await providers.fetch(key, limits.countLookup) : providers.get(key))?.vapidKeys;
  },
  /** Why no push can be sent to an endpoint; undefined: some can, or its host's address decides. */
  endpointProblem: async (id: ProjectId, endpoint: string): Promise<string | undefined> => {
    const key = projectProvidersKey(id);
    const problemBy = (record: ProvidersRecord | undefined) =>
      endpointProblem(endpoint, record?.vapidKeys ? record : undefined);
    if (problemBy(providers.get(key)) === undefined) return undefined;
    // Settings that were stored a moment ago may not be replicated yet.
    return problemBy(await providers.fetch(key, limits.countLookup));
  },
  /** The platforms whose provider is set up for the project. */
  platforms: (id: ProjectId) => {
    const known = providers.get(projectProvidersKey(id))?.providers ?? [];
    return platforms.filter((platform) => known.includes(providerOf[platform]));
  },
  /** Whether APNs is set up with a certificate. */
  apnsCertificate: (id: ProjectId): boolean => providers.get(projectProvidersKey(id))?.apnsCertificate === true,
  /** `receipts` of the project's notifications that have none. */
  receipts: (id: ProjectId) => settings.get(projectSettingsKey(id))?.receipts,
  /** The time zone of the project's devices without one; undefined: UTC. */
  defaultTimeZone: (id: ProjectId) => settings.get(projectSettingsKey(id))?.defaultTimeZone,
  /** The project's rules; undefined: it has none. */
  rules: (id: ProjectId): RulesRecord | undefined => rules.get(projectRulesKey(id)),
  /** The origin of the project's web app; undefined when the Web Push settings do not name it. */
  site: (id: ProjectId) => providers.get(projectProvidersKey(id))?.site,
});

type Subscription = {
  readonly keys?: Omit<SubscriptionKeys, "vapid_key">;
  /** The key that the app used for its subscription. */
  readonly vapidKeyId?: string;
  /** The project's current key, for a new subscription that names none. */
  readonly currentVapidKeyId?: string;
};

type GivenSubscription = {
  /** Undefined when only registry knows it. */
  readonly provider?: Provider;
  readonly token?: string | undefined;
  readonly keys?: SubscriptionKeys | undefined;
};

const isUrl = (token: string): boolean => /^https?:/i.test(token);

/**
 * Reads the Web Push subscription of a registration for registry. Refuses an endpoint to which nothing can be sent, and a key that is not
 * the project's, because the push service would refuse every push. Without Web Push settings no key can be checked.
 * @throws HeraldError `validation-failed`, where `names` are the names of token and keys in the body.
 */
export const readSubscription = async (
  projects: Pick<ProjectDirectory, "vapidKeys" | "endpointProblem">,
  projectId: ProjectId,
  { provider, token, keys: given }: GivenSubscription,
  names: { readonly token: string; readonly keys: string },
): Promise<Subscription> => {
  if (provider !== undefined && provider !== "webpush") return {};
  const { vapid_key: publicKey, ...keys } = given ?? {};
  const problem = token !== undefined && isUrl(token) ? await projects.endpointProblem(projectId, token) : undefined;
  if (problem !== undefined) throw new HeraldError("validation-failed", `${names.token}: ${problem}`);
  const known = await projects.vapidKeys(projectId);
  const current = known?.find(({ status }) => status === "current");
  const id = publicKey === undefined ? undefined : vapidKeyId(publicKey);
  if (id !== undefined && known !== undefined && !known.some((key) => key.id === id)) {
    // A key that was staged a moment ago may not be replicated yet.
    const now = await projects.vapidKeys(projectId, true);
    if (now !== undefined && !now.some((key) => key.id === id))
      throw new HeraldError(
        "validation-failed",
        `${names.keys}.vapid_key: is not a key of this project; subscribe with the key of GET /api/v1/webpush-key`,
      );
  }
  return {
    ...("p256dh" in keys ? { keys: keys as NonNullable<Subscription["keys"]> } : {}),
    ...(id === undefined ? {} : { vapidKeyId: id }),
    ...(current === undefined ? {} : { currentVapidKeyId: current.id }),
  };
};
