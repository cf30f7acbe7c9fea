import {
  type Device,
  type IdentityKey,
  type Operator,
  type Project,
  type ProjectToken,
  servingProvider,
  type Topic,
} from "@herald/contracts";
import { topicsOf } from "../domain/facets.ts";
import type { DeviceDocument } from "../stores/device-document.ts";
import type { OperatorDocument } from "../stores/operator-store.ts";
import type { IdentityKeyEntry, ProjectDocument, TokenEntry } from "../stores/project-store.ts";
import type { TopicDocument } from "../stores/topic-store.ts";

export const deviceView = (device: DeviceDocument): Device => ({
  id: device._id,
  token: device.token,
  platform: device.platform,
  provider: servingProvider(device),
  ...(device.installationId !== undefined && { installation_id: device.installationId }),
  metadata: device.metadata,
  identifiers: device.identifiers,
  status: device.status,
  ...(device.inactiveReason && { inactive_reason: device.inactiveReason }),
  topics: topicsOf(device.facets),
  ...(device.environment && { environment: device.environment }),
  ...(device.tokenKind && { token_kind: device.tokenKind }),
  ...(device.vapidKeyId && { vapid_key_id: device.vapidKeyId }),
  user_id: device.userId ?? null,
  ...(device.identifiedAt && { identified_at: device.identifiedAt.toISOString() }),
  ...(device.lastSeenAt && { last_seen_at: device.lastSeenAt.toISOString() }),
  created_at: device.createdAt.toISOString(),
  updated_at: device.updatedAt.toISOString(),
});

export const topicView = (topic: TopicDocument, devices: number): Topic => ({
  id: topic._id,
  name: topic.name,
  devices,
  closed: topic.closed === true,
  created_at: topic.createdAt.toISOString(),
});

const unprotected =
  "protected_metadata: this project is from before there was any, so every client may write `user_id`, `email` and the like and get what you send to such values. Set it with PATCH, to [] where that is meant";

export const identityKeyView = ({ id, algorithm, createdAt }: IdentityKeyEntry): IdentityKey => ({
  id,
  algorithm,
  created_at: createdAt.toISOString(),
});

export const projectView = (project: ProjectDocument): Project => ({
  id: project._id,
  name: project.name,
  open_registration: project.openRegistration,
  protected_metadata: [...(project.protectedMetadata ?? [])],
  ...(project.staleAfter && { stale_after: project.staleAfter }),
  ...(project.protectedMetadata ? {} : { warnings: [unprotected] }),
  created_at: project.createdAt.toISOString(),
});

export const tokenView = (token: TokenEntry): ProjectToken => ({
  id: token.id,
  name: token.name,
  scopes: [...token.scopes],
  ...(token.expiresAt && { expires_at: token.expiresAt.toISOString() }),
  created_at: token.createdAt.toISOString(),
});

export const operatorView = ({ _id, name, role, createdAt, rotatedAt }: OperatorDocument): Operator => ({
  id: _id,
  name,
  role,
  created_at: createdAt.toISOString(),
  ...(rotatedAt && { rotated_at: rotatedAt.toISOString() }),
});
