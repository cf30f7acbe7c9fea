import type { AskedRules, ProjectId } from "@herald/contracts";
import type { Partitionable } from "../domain/partition-batches.ts";
import { isOff, quietOf } from "../domain/preferences.ts";
import type { AudienceStore } from "../stores/audience-store.ts";

/** Adds to recipients what the rules of their project need to know. Costs one query where rules ask, and nothing otherwise. */
export const withRules = async (
  audience: Pick<AudienceStore, "chosenOf">,
  { projectId, rules }: { readonly projectId: ProjectId; readonly rules?: AskedRules | undefined },
  devices: Partitionable[],
): Promise<Partitionable[]> => {
  if (rules === undefined || devices.length === 0) return devices;
  const { kind, hours } = rules;
  const chosen = await audience.chosenOf(
    projectId,
    devices.map(({ recipient }) => recipient.id),
  );
  return devices.map((device) => {
    const { preferences, userPreferences, timeZone } = chosen.get(device.recipient.id) ?? {};
    const off = kind && isOff({ preferences, userPreferences }, kind);
    const quiet = hours && quietOf(userPreferences);
    if (!off && !quiet && !(hours && timeZone)) return device;
    const more = { ...(off && { off }), ...(hours && timeZone && { zone: timeZone }), ...(quiet && { quiet }) };
    return { ...device, recipient: { ...device.recipient, ...more } };
  });
};
