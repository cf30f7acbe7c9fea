import type { Platform } from "@herald/contracts";

export type DeviceInstallation = {
  /** The app's own id of its installation. */
  readonly installationId?: string | undefined;
  /** Set if the project's backend named the installation: a client may name any. */
  readonly installationBy?: "project" | undefined;
};

/**
 * The maximum of active devices of one installation. A phone has two for each user: one of the platform's own provider and one of
 * another. The rest is for push tokens that ended and that no push has met since.
 */
export const maxPerInstallation = 8;

/**
 * Equal for devices of the same platform, user and installation. Undefined without proof: a client can name any installation, so only
 * devices with a user, and devices whose installation the project's backend named, count as one phone.
 */
export const installationKey = ({
  platform,
  installationId,
  installationBy,
  userId,
}: DeviceInstallation & { readonly platform: Platform; readonly userId?: string | undefined }): string | undefined =>
  installationId === undefined || (userId === undefined && installationBy === undefined)
    ? undefined
    : JSON.stringify([platform, userId ?? null, installationId]);

/** What changes when a request names the installation of a device. Null removes it; undefined does not name it. */
export const nameInstallation = (
  before: DeviceInstallation,
  id: string | null | undefined,
  byProject: boolean | undefined,
): DeviceInstallation => {
  if (id === undefined) return {};
  if (id === null) return { installationId: undefined, installationBy: undefined };
  const kept = id === before.installationId ? before.installationBy : undefined;
  return { installationId: id, installationBy: byProject ? "project" : kept };
};
