import type { NewOperator } from "@herald/client";
import { knownValues } from "@herald/client/known-values";
import { Checkbox, CloseButton, Group, Select, Stack, Text } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { admin } from "../../api/clients.ts";
import { useProjectsNamed } from "../../api/projects.ts";
import type { FieldSpec, InputProps } from "../../parts/field-values.ts";

type Grant = NonNullable<NewOperator["projects"]>[number];

const typingMs = 200;

const ProjectTitle = ({ id }: { readonly id: string }) => {
  const { data } = useQuery({ queryKey: ["projects", id], queryFn: () => admin.projects.get(id) });
  return (
    <Text span className="break" flex={{ base: "1 0 100%", xs: 1 }} dir="auto">
      {data?.name ?? id}
    </Text>
  );
};

const GrantFields = ({ label, description, error, value, onChange }: InputProps<readonly Grant[]>) => {
  const [typed, setTyped] = useState("");
  const [text] = useDebouncedValue(typed.trim(), typingMs);
  const { data } = useProjectsNamed(text);
  const change = (id: string, changes: Partial<Grant>) =>
    onChange(value.map((one) => (one.id === id ? { ...one, ...changes } : one)));
  const granted = new Set(value.map(({ id }) => id));
  const others = (data?.data ?? [])
    .filter(({ id }) => !granted.has(id))
    .map(({ id, name }) => ({ value: id, label: name }));
  return (
    <Stack gap={8} role="group" aria-label={label}>
      <Select
        label={label}
        description={description}
        error={error}
        placeholder="Add a project"
        data={others}
        value={null}
        searchable
        searchValue={typed}
        onSearchChange={setTyped}
        filter={({ options }) => options}
        nothingFoundMessage="No project names contain this."
        onChange={(id) => {
          if (id) onChange([...value, { id, role: "viewer" }]);
          setTyped("");
        }}
      />
      {value.map(({ id, role, approve }) => (
        <Group key={id} gap={8}>
          <ProjectTitle id={id} />
          <Select
            size="xs"
            w={104}
            aria-label={`Role in ${id}`}
            data={knownValues.projectRole}
            value={role}
            allowDeselect={false}
            onChange={(next) => change(id, { role: next ?? role })}
          />
          <Checkbox
            size="xs"
            label="may approve"
            aria-label={`May approve in ${id}`}
            checked={approve === true}
            onChange={(event) => change(id, { approve: event.currentTarget.checked || undefined })}
          />
          <CloseButton
            ml="auto"
            aria-label={`Remove ${id}`}
            onClick={() => onChange(value.filter((one) => one.id !== id))}
          />
        </Group>
      ))}
    </Stack>
  );
};

/** Roles in single projects. */
export const grantsField: FieldSpec = {
  label: "Projects",
  hint: "In these projects the higher of both roles counts. Who may approve decides on large sends of others.",
  as: { input: GrantFields },
};
