import type { DeclaredKind, KindDeclaration } from "@herald/client";
import { Group, Select } from "@mantine/core";
import { Field } from "./field.tsx";

/** Null: none; undefined: those of the project, or none. */
export type OwnHours = KindDeclaration["quiet_hours"];

type Props = {
  readonly value: OwnHours;
  readonly onChange: (hours: OwnHours) => void;
  /** A kind, which has the project's hours unless it says otherwise. */
  readonly inherits?: boolean;
  readonly error?: string | undefined;
};

const firstNight = { from: "22:00", to: "07:00" };
const choices = { delay: "delay until they end", skip: "skip", none: "none" };

export const hoursText = (hours: DeclaredKind["quiet_hours"], absent: string): string => {
  if (hours === undefined) return absent;
  return hours === null ? "none" : `${hours.from}–${hours.to}, ${hours.mode}`;
};

/** Whether there are quiet hours, what happens in them, and when they are. */
export const HoursFields = ({ value, onChange, inherits = false, error }: Props) => {
  const data = Object.entries({ ...(inherits && { project: "the project's" }), ...choices });
  const choose = (choice: string | null) => {
    if (choice === "delay" || choice === "skip") onChange({ ...firstNight, ...value, mode: choice });
    else onChange(choice === "project" ? undefined : null);
  };
  return (
    <Group grow align="end">
      <Select
        label="In quiet hours"
        data={data.map(([key, label]) => ({ value: key, label }))}
        value={value?.mode ?? (value === undefined && inherits ? "project" : "none")}
        onChange={choose}
        allowDeselect={false}
        error={error}
      />
      {value && (
        <>
          <Field label="From" type="time" value={value.from} onChange={(from) => onChange({ ...value, from })} />
          <Field label="To" type="time" value={value.to} onChange={(to) => onChange({ ...value, to })} />
        </>
      )}
    </Group>
  );
};
