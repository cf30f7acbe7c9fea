import type { AskedRules, DeclaredKind, OwnQuietHours, Preferences, Recipient } from "@herald/contracts";

/** What a device or a user has chosen, as one short string: `,-offers,+news,22:00-07:00,`. Empty or absent: nothing. */
export type Choices = string;

type Chosen = { readonly kinds: Readonly<Record<string, boolean>>; readonly quiet_hours?: OwnQuietHours | undefined };

export const packChoices = ({ kinds, quiet_hours: hours }: Chosen): Choices => {
  const parts = Object.entries(kinds)
    .sort(([one], [other]) => (one < other ? -1 : 1))
    .map(([kind, on]) => `${on ? "+" : "-"}${kind}`);
  if (hours) parts.push(`${hours.from}-${hours.to}`);
  return parts.length === 0 ? "" : `,${parts.join(",")},`;
};

/** The quiet hours in choices, such as `22:00-07:00`. */
export const quietOf = (choices: Choices = ""): string | undefined => /,(\d\d:\d\d-\d\d:\d\d),/.exec(choices)?.[1];

const choiceOf = (choices: Choices = "", kind: string): boolean | undefined => {
  if (choices.includes(`,-${kind},`)) return false;
  return choices.includes(`,+${kind},`) ? true : undefined;
};

/** What is chosen for a device: by itself, and by its user. */
export type ChosenFor = { readonly preferences?: Choices | undefined; readonly userPreferences?: Choices | undefined };

const settingOf = ({ preferences, userPreferences }: ChosenFor, kind: string, usual: boolean) => {
  const [own, users] = [choiceOf(preferences, kind), choiceOf(userPreferences, kind)];
  const on = own === false || users === false ? false : (own ?? users ?? usual);
  const by = own === on ? "device" : users === on ? "user" : "default";
  return { on, set_by: by } as const;
};

/** Off beats on, and on beats the default of the kind. */
export const isOff = (chosen: ChosenFor, { name, on }: NonNullable<AskedRules["kind"]>): boolean =>
  !settingOf(chosen, name, on).on;

/** What the rules of a project need to know about a device. */
export const ruleInputsOf = (
  { timeZone, ...chosen }: ChosenFor & { readonly timeZone?: string | undefined },
  { kind, hours }: AskedRules,
): Pick<Recipient, "off" | "zone" | "quiet"> => {
  const quiet = hours && quietOf(chosen.userPreferences);
  return {
    ...(kind && isOff(chosen, kind) && { off: true }),
    ...(hours && timeZone && { zone: timeZone }),
    ...(quiet && { quiet }),
  };
};

/** As a person sees them. */
export const preferencesView = (kinds: readonly DeclaredKind[], chosen: ChosenFor): Preferences["kinds"] =>
  kinds
    .toSorted((one, other) => (one.kind < other.kind ? -1 : 1))
    .map(({ kind, title, critical, on_by_default: usual }) => ({
      kind,
      title,
      critical,
      ...(critical ? ({ on: true, set_by: "default" } as const) : settingOf(chosen, kind, usual)),
    }));

export const hoursView = (choices: Choices | undefined): OwnQuietHours | undefined => {
  const [from, to] = quietOf(choices)?.split("-") ?? [];
  return from === undefined || to === undefined ? undefined : { from, to };
};

/** Why choices cannot be stored, by field. */
export const choiceProblems = (kinds: readonly DeclaredKind[], chosen: Chosen): string[] => {
  const declared = new Map(kinds.map((one) => [one.kind, one]));
  return Object.entries(chosen.kinds).flatMap(([kind, on]) => {
    const field = `preferences.kinds.${kind}`;
    const found = declared.get(kind);
    if (!found) return [`${field}: the project declares no such kind; GET lists those that it does`];
    return found.critical && !on ? [`${field}: the kind is critical and cannot be switched off`] : [];
  });
};
