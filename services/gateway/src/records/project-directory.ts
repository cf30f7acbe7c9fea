import {
  type Platform,
  type ProjectId,
  type ProjectRecord,
  type ProvidersRecord,
  projectProvidersKey,
  projectSettingsKey,
  providerOf,
} from "@herald/contracts";
import { HeraldError } from "@herald/kit";
import type { RateLimits } from "../limits/rate-limits.ts";
import type { BucketReplica } from "./replicate-bucket.ts";

const platforms = Object.keys(providerOf) as Platform[];

type VapidKeys = NonNullable<ProvidersRecord["vapidKeys"]>;

export type ProjectDirectory = {
  /** A project's settings. Throws project-not-found. */
  readonly settings: (id: ProjectId) => Promise<ProjectRecord>;
  /** The keys that browsers may subscribe with; undefined when the project has no Web Push. `fresh` reads from the bus. */
  readonly vapidKeys: (id: ProjectId, fresh?: boolean) => Promise<VapidKeys | undefined>;
  /** The platforms whose provider the project has. */
  readonly platforms: (id: ProjectId) => Platform[];
};

/** What the gateway knows about projects while every database is unavailable. */
export const createProjectDirectory = (
  replica: BucketReplica<ProjectRecord | ProvidersRecord>,
  limits: RateLimits,
): ProjectDirectory => ({
  settings: async (id) => {
    const key = projectSettingsKey(id);
    const record = replica.get(key) ?? (await replica.fetch(key, limits.countLookup));
    if (record === undefined || !("openRegistration" in record)) {
      throw new HeraldError("project-not-found", "project: no such project");
    }
    return record;
  },
  vapidKeys: async (id, fresh = false) => {
    const key = projectProvidersKey(id);
    const record = fresh ? await replica.fetch(key, limits.countLookup) : replica.get(key);
    return record !== undefined && "providers" in record ? record.vapidKeys : undefined;
  },
  platforms: (id) => {
    const record = replica.get(projectProvidersKey(id));
    const providers = record !== undefined && "providers" in record ? record.providers : [];
    return platforms.filter((platform) => providers.includes(providerOf[platform]));
  },
});
