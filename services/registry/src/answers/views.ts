import type { Device, Project, ProjectToken, Topic } from "@herald/contracts";
import { topicsOf } from "../domain/facets.ts";
import type { DeviceDocument } from "../stores/device-document.ts";
import type { ProjectDocument, TokenEntry } from "../stores/project-store.ts";
import type { TopicDocument } from "../stores/topic-store.ts";

/** Documents in the words of the interface. */

export const deviceView = (device: DeviceDocument): Device => ({
  id: device._id,
  token: device.token,
  platform: device.platform,
  metadata: device.metadata,
  identifiers: device.identifiers,
  status: device.status,
  topics: topicsOf(device.facets),
  ...(device.environment && { environment: device.environment }),
  ...(device.tokenKind && { token_kind: device.tokenKind }),
  ...(device.vapidKeyId && { vapid_key_id: device.vapidKeyId }),
  created_at: device.createdAt.toISOString(),
  updated_at: device.updatedAt.toISOString(),
});

export const topicView = (topic: TopicDocument, devices: number): Topic => ({
  id: topic._id,
  name: topic.name,
  devices,
  created_at: topic.createdAt.toISOString(),
});

export const projectView = (project: ProjectDocument): Project => ({
  id: project._id,
  name: project.name,
  open_registration: project.openRegistration,
  created_at: project.createdAt.toISOString(),
});

export const tokenView = (token: TokenEntry): ProjectToken => ({
  id: token.id,
  name: token.name,
  scopes: [...token.scopes],
  ...(token.expiresAt && { expires_at: token.expiresAt.toISOString() }),
  created_at: token.createdAt.toISOString(),
});
