import type { DeviceId, Platform, ProjectId, Provider, Target } from "@herald/contracts";
import { createYieldIfDue } from "@herald/kit";
import { matches } from "../domain/matches.ts";
import type { AudienceStore } from "../stores/audience-store.ts";

/** What decides whether another device stands for this one. */
type Installed = {
  readonly _id: DeviceId;
  readonly platform: Platform;
  readonly provider?: Provider | undefined;
  readonly installationId?: string | undefined;
  readonly userId?: string | undefined;
};

/** The same user too: a push for one user is not the push of another, and only a proven user has one. */
const keyOf = ({ platform, installationId, userId }: Installed): string =>
  JSON.stringify([platform, installationId, userId]);

export const mayBeReachedTwice = ({ provider, installationId }: Installed): boolean =>
  provider !== undefined && installationId !== undefined;

/**
 * Of the devices, those whose app installation gets the push through its platform's own provider, and the device that gets it. That
 * device must be active, match one of the targets, and have the same platform, installation and user. One query, and none for devices
 * without another provider and an installation.
 */
export const reachedTwice = async (
  audience: Pick<AudienceStore, "ofInstallations">,
  { projectId, targets }: { readonly projectId: ProjectId; readonly targets: readonly Target[] },
  devices: readonly Installed[],
): Promise<ReadonlyMap<DeviceId, DeviceId>> => {
  const asked = devices.filter(mayBeReachedTwice);
  if (asked.length === 0) return new Map();
  const installations = [...new Set(asked.flatMap(({ installationId }) => installationId ?? []))];
  const yieldIfDue = createYieldIfDue();
  const reached = new Map<string, DeviceId>();
  for (const row of await audience.ofInstallations(projectId, installations)) {
    const candidate = { ...row, id: row._id, facets: new Set(row.facets) };
    for (const target of targets) {
      const due = yieldIfDue();
      if (due) await due;
      if (!matches(target, candidate)) continue;
      reached.set(keyOf(row), row._id);
      break;
    }
  }
  return new Map(
    asked.flatMap((device) => {
      const other = reached.get(keyOf(device));
      return other === undefined ? [] : [[device._id, other] as const];
    }),
  );
};
