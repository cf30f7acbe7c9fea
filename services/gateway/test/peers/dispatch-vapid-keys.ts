import { createECDH } from "node:crypto";
import {
  type ProjectId,
  type ProvidersRecord,
  type VapidKeyStatus,
  vapidKeyId,
  vapidKeyRequests,
} from "@herald/contracts";
import { HeraldError, notFound } from "@herald/kit";
import { at, type Serve } from "./rows.ts";

type Key = { id: string; public_key: string; status: VapidKeyStatus; created_at: string };

/** Dispatch's Web Push keys: each project with settings has one. `told` publishes changes. */
export const serveVapidKeys = (serve: Serve, told: (projectId: ProjectId) => Promise<void>) => {
  const projects = new Map<string, { keys: Key[]; retired: string[]; unnamed: string }>();
  const newKey = (status: VapidKeyStatus): Key => {
    const publicKey = createECDH("prime256v1").generateKeys("base64url");
    return { id: vapidKeyId(publicKey), public_key: publicKey, status, created_at: at() };
  };
  const ringOf = (projectId: ProjectId) => {
    const ring = projects.get(projectId);
    if (ring === undefined) throw notFound("provider-not-found", "provider", "the project has no settings for it");
    return ring;
  };
  const keyOf = (projectId: ProjectId, keyId: string): Key => {
    const key = ringOf(projectId).keys.find(({ id }) => id === keyId);
    if (key === undefined) throw notFound("vapid-key-not-found", "key");
    return key;
  };

  serve(vapidKeyRequests.list, ({ projectId }) => ringOf(projectId));
  serve(vapidKeyRequests.stage, async ({ projectId }) => {
    const { keys } = ringOf(projectId);
    const staged = keys.find(({ status }) => status === "next");
    const key = staged ?? newKey("next");
    if (staged === undefined) keys.unshift(key);
    await told(projectId);
    return { key, created: staged === undefined };
  });
  serve(vapidKeyRequests.promote, async ({ projectId, keyId }) => {
    const key = keyOf(projectId, keyId);
    for (const other of ringOf(projectId).keys) if (other.status === "current") other.status = "earlier";
    key.status = "current";
    await told(projectId);
    return key;
  });
  serve(vapidKeyRequests.retire, async ({ projectId, keyId }) => {
    const ring = ringOf(projectId);
    if (keyOf(projectId, keyId).status === "current") throw new HeraldError("vapid-key-current", "key: it is current");
    ring.keys = ring.keys.filter(({ id }) => id !== keyId);
    ring.retired.push(keyId);
    await told(projectId);
    return {};
  });

  return {
    begin: (projectId: ProjectId) => {
      const first = newKey("current");
      if (!projects.has(projectId)) projects.set(projectId, { keys: [first], retired: [], unnamed: first.id });
    },
    end: (projectId: ProjectId) => projects.delete(projectId),
    published: (projectId: ProjectId): Pick<ProvidersRecord, "vapidKeys"> => {
      const keys = projects.get(projectId)?.keys;
      return keys
        ? { vapidKeys: keys.map(({ id, public_key: publicKey, status }) => ({ id, publicKey, status })) }
        : {};
    },
  };
};
