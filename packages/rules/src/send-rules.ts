import type {
  AskedRules,
  DeclaredKind,
  FrequencyCap,
  NotificationContent,
  QuietHours,
  RulesRecord,
} from "@herald/contracts";

/** What the rules of its project ask of a send. */
export type SendRules = {
  /** The declared kind, if people can switch it off. */
  readonly kind?: DeclaredKind;
  readonly cap?: FrequencyCap;
  /** Quiet hours of the kind or the project. */
  readonly hours?: QuietHours;
  /** Users of the project may have quiet hours. */
  readonly ownHours: boolean;
  /** Of devices without one. */
  readonly zone: string;
};

/** Undefined: every device gets the send at once, and nothing is asked or stored for the rules. */
export const rulesOfSend = (
  record: RulesRecord | undefined,
  { kind: name, silent = false, activity }: Pick<NotificationContent, "kind" | "silent" | "activity">,
): SendRules | undefined => {
  // What has started is shown to its end.
  if (record === undefined || (activity && activity.event !== "start")) return undefined;
  const declared = name === undefined ? undefined : record.kinds.find(({ kind }) => kind === name);
  if (declared?.critical) return undefined;
  const cap = silent ? undefined : declared?.frequency_cap;
  // The hours of a kind, also none, replace those of the project.
  const set = declared?.quiet_hours === undefined ? record.quietHours : declared.quiet_hours;
  const hours = silent || !set ? undefined : set;
  const ownHours = !silent && record.ownHours === true;
  if (!declared && !hours && !ownHours) return undefined;
  return {
    ...(declared && { kind: declared }),
    ...(cap && { cap }),
    ...(hours && { hours }),
    ownHours,
    zone: record.timeZone ?? "UTC",
  };
};

/** What registry must add to the recipients. */
export const askedRulesOf = ({ kind, hours, ownHours }: SendRules): AskedRules => ({
  ...(kind && { kind: { name: kind.kind, on: kind.on_by_default } }),
  ...((hours || ownHours) && { hours: true }),
});
