import { type Bus, handleRequest, type RequestListener } from "@herald/bus";
import { ListVapidKeys, type ProjectId, PromoteVapidKey, RetireVapidKey, StageVapidKey } from "@herald/contracts";
import { HeraldError } from "@herald/kit";
import type { ProviderPool } from "../providers/provider-pool.ts";
import { findKey, type KeyRing, promote, retire, stage, toRingKey } from "../providers/webpush/key-ring.ts";
import {
  type CompleteWebPushSettings,
  checkPair,
  ringOf,
  shownKeys,
  webPushPublicView,
  withRing,
} from "../providers/webpush/settings.ts";
import { newVapidKeys } from "../providers/webpush/vapid-keys.ts";
import type { CredentialStore } from "../stores/credential-store.ts";
import type { ProviderRecords } from "./provider-records.ts";

type Deps = {
  readonly bus: Bus;
  readonly credentials: Pick<CredentialStore, "find" | "open" | "change">;
  readonly records: Pick<ProviderRecords, "update">;
  readonly pool: Pick<ProviderPool, "forget">;
  readonly now: () => Date;
};

/** The rotation of a project's Web Push keys, step by step; each step may be repeated. */
export const handleVapidKeyRequests = ({ bus, credentials, records, pool, now }: Deps): RequestListener[] => {
  const read = async (projectId: ProjectId) => {
    const document = await credentials.find(projectId, "webpush");
    if (!document) throw new HeraldError("provider-not-found", "the project has no settings for webpush");
    const settings = (await credentials.open(document)) as CompleteWebPushSettings;
    return { document, settings, ring: ringOf(settings, document.updatedAt) };
  };

  /** Writes what `alter` makes of the keys, and tells the gateways also when it was written before: a crash may have come between. */
  const change = async (projectId: ProjectId, alter: (ring: KeyRing) => KeyRing): Promise<KeyRing> => {
    for (;;) {
      const { document, settings, ring } = await read(projectId);
      const altered = alter(ring);
      const complete = withRing(settings, altered);
      const update = { settings: { ...complete }, view: webPushPublicView(complete) };
      if (altered !== ring && !(await credentials.change(document, update, now()))) continue;
      pool.forget(projectId, "webpush");
      await records.update(projectId);
      return altered;
    }
  };

  const shown = (ring: KeyRing, id: string) => {
    const key = shownKeys(ring).find((one) => one.id === id);
    if (!key) throw new Error("a key that was just written is not there");
    return key;
  };

  return [
    handleRequest(bus, ListVapidKeys, async ({ projectId }) => {
      const { ring } = await read(projectId);
      return { keys: shownKeys(ring), retired: [...ring.retired], unnamed: ring.unnamed };
    }),

    handleRequest(bus, StageVapidKey, async ({ projectId, pair }) => {
      const given = checkPair(pair ?? {});
      if (given.problems.length > 0)
        throw new HeraldError(
          "validation-failed",
          given.problems.map((problem) => `key.${problem}`),
        );
      const made = toRingKey(given.keys ?? newVapidKeys(), now());
      let created = false;
      const ring = await change(projectId, (before) => {
        // A repeat without a pair is the same wish, not another one.
        if (given.keys === undefined && before.next) return before;
        const after = stage(before, made);
        created ||= after !== before;
        return after;
      });
      return { key: shown(ring, ring.next?.id ?? made.id), created };
    }),

    handleRequest(bus, PromoteVapidKey, async ({ projectId, keyId }) =>
      shown(await change(projectId, (ring) => promote(ring, keyId, now())), keyId),
    ),

    handleRequest(bus, RetireVapidKey, async ({ projectId, keyId }) => {
      const ring = await change(projectId, (before) => retire(before, keyId));
      if (findKey(ring, keyId)) throw new Error("a key that was retired is still there");
      return {};
    }),
  ];
};
