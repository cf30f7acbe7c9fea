import { isDeepStrictEqual } from "node:util";
import { type Bucket, handleRequest, type RequestListener } from "@herald/bus";
import {
  type ProjectId,
  type Provider,
  type ProvidersRecord,
  type ProviderView,
  projectProvidersKey,
  providerRequests,
  settingsFingerprint,
  vapidKeyRequests,
} from "@herald/contracts";
import { existing, notFound } from "@herald/kit";
import type { Deps } from "../deps.ts";
import { refusalAdvice } from "../domain/refusal-advice.ts";
import type { Sweeps } from "../jobs/sweeps.ts";
import { apnsPublicView, checkApnsSettings } from "../providers/apns/settings.ts";
import { checkFcmSettings, fcmPublicView } from "../providers/fcm/settings.ts";
import { freshProblems } from "../providers/provider-problems.ts";
import { refuseProblems, type SettingsRules } from "../providers/settings-problems.ts";
import {
  checkPair,
  checkWebPushSettings,
  type KeyRing,
  newVapidKeys,
  promote,
  publishedKeys,
  publishedOrigin,
  publishedSite,
  retire,
  type StoredWebPushSettings,
  shownKeys,
  stage,
  toRingKey,
  webPushPublicView,
} from "../providers/webpush/settings.ts";
import type { CredentialDocument, CredentialStore, Settings } from "../stores/credential-store.ts";

/** Projects that are read and compared at a time. */
const atATime = 200;

/** Tells gateways which providers a project has, so that they know while the database is unavailable. */
export const createProviderRecords = (
  bucket: Bucket<ProvidersRecord>,
  credentials: Pick<CredentialStore, "viewsOf" | "projectsAfter">,
) => {
  const wanted = async (projectId: ProjectId): Promise<ProvidersRecord> => {
    const views = await credentials.viewsOf(projectId);
    const webPush = views.find(({ provider }) => provider === "webpush");
    const apns = views.find(({ provider }) => provider === "apns");
    const site = webPush && publishedSite(webPush.view);
    const pushOrigin = webPush && publishedOrigin(webPush.view);
    return {
      providers: views.map(({ provider }) => provider),
      ...(apns && "certificate_sha256" in apns.view && { apnsCertificate: true as const }),
      ...(webPush ? { vapidKeys: publishedKeys(webPush.view) } : {}),
      ...(site !== undefined && { site }),
      ...(pushOrigin !== undefined && { pushOrigin }),
    };
  };

  /**
   * Writes the record from the database until both agree after the write, so that none of two simultaneous changes is lost. False when
   * they agreed before.
   */
  const update = async (projectId: ProjectId): Promise<boolean> => {
    const key = projectProvidersKey(projectId);
    for (let written = false; ; written = true) {
      const record = await wanted(projectId);
      if (isDeepStrictEqual((await bucket.get(key))?.value, record)) return written;
      await bucket.put(key, record);
    }
  };

  return {
    update,
    /** Repairs records that a crash left outdated, or that the broker lost. Resolves to their number. */
    reconcile: async (signal: AbortSignal): Promise<number> => {
      let mended = 0;
      for (let some = await credentials.projectsAfter(undefined, atATime); some.length > 0; ) {
        for (const projectId of some) {
          signal.throwIfAborted();
          if (await update(projectId)) mended++;
        }
        some = await credentials.projectsAfter(some.at(-1), atATime);
      }
      return mended;
    },
    remove: (projectId: ProjectId): Promise<void> => bucket.delete(projectProvidersKey(projectId)),
  };
};

export type ProviderRecords = ReturnType<typeof createProviderRecords>;

/**
 * Checks new provider settings: that they are complete, that keys parse, and that this installation allows them. Resolves to the settings
 * and the part of them that may be shown. `previousKeys`: the keys of the Web Push settings that they replace.
 */
const checkSettings = (
  provider: Provider,
  input: unknown,
  rules: SettingsRules,
  previousKeys: KeyRing | undefined,
): Settings => {
  switch (provider) {
    case "apns":
      return withView(checkApnsSettings(input, rules), apnsPublicView);
    case "fcm":
      return withView(checkFcmSettings(input, rules), fcmPublicView);
    case "webpush":
      // Browsers have subscribed with the existing key, so it stays unless the new settings replace it.
      return withView(checkWebPushSettings(input, rules, previousKeys), webPushPublicView);
  }
};

/** A field of the stored view, which is shown beside the settings. */
const withFingerprint = ({ settings, view }: Settings, fingerprint: unknown): Settings => ({
  settings,
  view: { ...view, fingerprint },
});

const withView = <Checked extends object>(
  checked: Checked,
  view: (settings: Checked) => Record<string, unknown>,
): Settings => ({ settings: { ...checked } as Record<string, unknown>, view: view(checked) });

type ProviderDeps = Pick<Deps, "bus" | "credentials" | "deliveries" | "now" | "outbox" | "pool"> & {
  readonly records: ProviderRecords;
  /** Whether projects may set another host than the provider's. */
  readonly customEndpoints: boolean;
  readonly sweeps: Pick<Sweeps, "sweepDue">;
};

export const handleProviderRequests = (deps: ProviderDeps): RequestListener[] => {
  const { bus, credentials, deliveries, records, customEndpoints, pool, sweeps, outbox, now } = deps;

  /** Resumes the deliveries that waited for new settings, after settings were put or deleted. */
  const changed = async (projectId: ProjectId, provider: Provider) => {
    await records.update(projectId);
    pool.forget(projectId, provider);
    await deliveries.resume(projectId, provider, now());
    void sweeps.sweepDue();
    await outbox.flushCredential(projectId, provider);
  };

  /** Only Web Push keeps keys. For other providers, new settings must be able to replace settings that cannot be decrypted. */
  const previousKeys = async (document: CredentialDocument | null): Promise<KeyRing | undefined> =>
    document?.provider === "webpush" ? ((await credentials.open(document)) as StoredWebPushSettings).ring : undefined;

  const replace = async (projectId: ProjectId, provider: Provider, settings: unknown): Promise<CredentialDocument> => {
    for (;;) {
      const before = await credentials.find(projectId, provider);
      const checked = checkSettings(provider, settings, { customEndpoints, now: now() }, await previousKeys(before));
      // Undefined when they changed since they were read: replacing them would lose new keys.
      const shown = withFingerprint(checked, settingsFingerprint(settings));
      const document = await credentials.put(projectId, provider, shown, now(), before);
      if (document) return document;
    }
  };

  return [
    handleRequest(bus, providerRequests.put, async ({ projectId, provider, settings }) => {
      const document = await replace(projectId, provider, settings);
      await changed(projectId, provider);
      return providerView(document, now());
    }),

    handleRequest(bus, providerRequests.get, async ({ projectId, provider }) =>
      providerView(await findProvider(credentials, projectId, provider), now()),
    ),

    handleRequest(bus, providerRequests.delete, async ({ projectId, provider }) => {
      const removed = await credentials.remove(projectId, provider);
      // Also without stored settings: an earlier try may have failed after the deletion.
      await changed(projectId, provider);
      if (!removed) throw providerNotFound();
      return {};
    }),
  ];
};

/** The stored settings of a project's provider. @throws HeraldError `provider-not-found` */
export const findProvider = async (credentials: Deps["credentials"], projectId: ProjectId, provider: Provider) =>
  existing(await credentials.find(projectId, provider), providerNotFound);

const providerNotFound = () => notFound("provider-not-found", "provider", "the project has no settings for it");

const pauseView = ({ reason, providerReason, nextTrialAt }: NonNullable<CredentialDocument["paused"]>) => {
  const said = providerReason || reason;
  return {
    paused_reason: said,
    paused_detail: refusalAdvice(said),
    ...(nextTrialAt && { next_trial_at: nextTrialAt.toISOString() }),
  };
};

const providerView = (document: CredentialDocument, now: Date): ProviderView => {
  const { provider, paused, updatedAt } = document;
  const { fingerprint, ...settings } = document.view;
  const problems = freshProblems(document, now).map(({ reason, host, detail, since }) => ({
    ...{ reason, host, detail },
    since: since.toISOString(),
  }));
  return {
    provider,
    settings,
    ...(fingerprint !== undefined && { fingerprint: String(fingerprint) }),
    status: paused ? "paused" : "active",
    ...(paused && pauseView(paused)),
    ...(problems.length > 0 && { problems }),
    updated_at: updatedAt.toISOString(),
  };
};

type VapidKeyDeps = Pick<ProviderDeps, "bus" | "credentials" | "now" | "pool" | "records">;

/** Requests that rotate a project's Web Push keys. Each step is repeatable. */
export const handleVapidKeyRequests = ({ bus, credentials, records, pool, now }: VapidKeyDeps): RequestListener[] => {
  const read = async (projectId: ProjectId) => {
    const document = await findProvider(credentials, projectId, "webpush");
    return { document, settings: (await credentials.open(document)) as StoredWebPushSettings };
  };

  /** Stores the keys that `alter` returns. Updates the gateways' record even if nothing changed: an earlier call may have crashed. */
  const change = async (projectId: ProjectId, alter: (ring: KeyRing) => KeyRing): Promise<KeyRing> => {
    for (;;) {
      const { document, settings } = await read(projectId);
      const ring = alter(settings.ring);
      const changed = { settings: { ...settings, ring }, view: webPushPublicView({ ...settings, ring }) };
      const update = withFingerprint(changed, document.view.fingerprint);
      if (ring !== settings.ring && !(await credentials.change(document, update, now()))) continue;
      pool.forget(projectId, "webpush");
      await records.update(projectId);
      return ring;
    }
  };

  const shown = (ring: KeyRing, id: string) => {
    const key = shownKeys(ring).find((one) => one.id === id);
    if (!key) throw new Error("a key that was just written is not there");
    return key;
  };

  return [
    handleRequest(bus, vapidKeyRequests.list, async ({ projectId }) => {
      const { ring } = (await read(projectId)).settings;
      return { keys: shownKeys(ring), retired: [...ring.retired], unnamed: ring.unnamed };
    }),

    handleRequest(bus, vapidKeyRequests.stage, async ({ projectId, pair }) => {
      const given = checkPair(pair ?? {});
      refuseProblems(given.problems.map((problem) => `key.${problem}`));
      const made = toRingKey(given.keys ?? newVapidKeys(), now());
      let created = false;
      const ring = await change(projectId, (before) => {
        // A repeated request without a key pair must not create another one.
        if (given.keys === undefined && before.next) return before;
        const after = stage(before, made);
        created ||= after !== before;
        return after;
      });
      return { key: shown(ring, ring.next?.id ?? made.id), created };
    }),

    handleRequest(bus, vapidKeyRequests.promote, async ({ projectId, keyId }) =>
      shown(await change(projectId, (ring) => promote(ring, keyId, now())), keyId),
    ),

    handleRequest(bus, vapidKeyRequests.retire, async ({ projectId, keyId }) => {
      await change(projectId, (ring) => retire(ring, keyId));
      return {};
    }),
  ];
};
