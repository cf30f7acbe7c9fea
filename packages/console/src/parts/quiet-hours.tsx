import type { DeclaredKind, KindDeclaration } from "@herald/client";
import { Group, Select } from "@mantine/core";
import { Field } from "./field.tsx";
import type { FieldSpec, InputProps } from "./field-values.ts";

/** Null: none; undefined: those of the project, or none. */
type OwnHours = KindDeclaration["quiet_hours"];

const firstNight = { from: "22:00", to: "07:00" };
const choices = { delay: "delay until they end", skip: "skip", none: "none" };

export const hoursText = (hours: DeclaredKind["quiet_hours"], absent: string): string => {
  if (hours === undefined) return absent;
  return hours === null ? "none" : `${hours.from}–${hours.to}, ${hours.mode}`;
};

/** Whether there are quiet hours, what happens in them, and when they are. A kind inherits the project's unless it says otherwise. */
export const quietHours = (inherits: boolean): FieldSpec => {
  const data = Object.entries({ ...(inherits && { project: "the project's" }), ...choices });
  return {
    label: "In quiet hours",
    as: {
      input: ({ label, value, onChange, error }: InputProps<OwnHours>) => (
        <Group grow align="end">
          <Select
            label={label}
            data={data.map(([key, text]) => ({ value: key, label: text }))}
            value={value?.mode ?? (value === undefined && inherits ? "project" : "none")}
            onChange={(choice) => {
              if (choice === "delay" || choice === "skip") onChange({ ...firstNight, ...value, mode: choice });
              else onChange(choice === "project" ? undefined : null);
            }}
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
      ),
      read: (hours) => (inherits ? hours : (hours ?? null)),
    },
  };
};
