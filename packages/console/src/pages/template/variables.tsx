import { Button, NativeSelect, SimpleGrid, Text } from "@mantine/core";
import { Field } from "../../parts/field.tsx";
import { variableTypes } from "../../parts/variable.ts";
import type { Variable } from "./content.ts";

type Props = {
  readonly value: readonly Variable[];
  readonly onChange: (variables: Variable[]) => void;
  readonly problemOf: (name: string) => string | undefined;
};

/** The variables that the texts show, one in a row. */
export const VariableFields = ({ value, onChange, problemOf }: Props) => {
  const change = (at: number, changes: Partial<Variable>) =>
    onChange(value.map((one, other) => (other === at ? { ...one, ...changes } : one)));
  return (
    <>
      {value.length === 0 && <Text c="dimmed">A text shows a variable as {"{{ name }}"}.</Text>}
      {value.map(({ name, type, fallback, sample }, at) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: a name changes while it is typed
        <SimpleGrid cols={{ base: 2, sm: 5 }} spacing="sm" verticalSpacing="xs" key={at}>
          <Field
            label="Variable"
            value={name}
            onChange={(text) => change(at, { name: text })}
            error={problemOf(name.trim())}
            placeholder="order"
          />
          <NativeSelect
            label="Type"
            value={type}
            onChange={(event) => change(at, { type: event.currentTarget.value })}
            data={[...variableTypes]}
          />
          <Field
            label="Fallback"
            value={fallback}
            onChange={(text) => change(at, { fallback: text })}
            placeholder="required"
          />
          <Field label="Sample" value={sample} onChange={(text) => change(at, { sample: text })} />
          <Button
            variant="default"
            mt={{ base: 0, sm: 22 }}
            aria-label={`Remove ${name || "the variable"}`}
            onClick={() => onChange(value.filter((_, other) => other !== at))}
          >
            Remove
          </Button>
        </SimpleGrid>
      ))}
      <Button
        variant="default"
        w="fit-content"
        onClick={() => onChange([...value, { name: "", type: "string", fallback: "", sample: "" }])}
      >
        Add a variable
      </Button>
    </>
  );
};
