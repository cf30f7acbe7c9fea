import type { NewOperator, Operator } from "@herald/client";
import { CloseButton, Group, Select, Stack, Text } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { admin } from "../../api/clients.ts";
import { useProjectsNamed } from "../../api/projects.ts";
import { FormDialog } from "../../parts/form.tsx";

export type Grant = NonNullable<NewOperator["projects"]>[number];

export const projectRoles = ["viewer", "operator", "admin"] as const;

const typingMs = 200;

const ProjectTitle = ({ id }: { readonly id: string }) => {
  const { data } = useQuery({ queryKey: ["projects", id], queryFn: () => admin.projects.get(id) });
  return (
    <Text span className="break grow" dir="auto">
      {data?.name ?? id}
    </Text>
  );
};

type Props = { readonly value: readonly Grant[]; readonly onChange: (grants: Grant[]) => void };

/** Roles in single projects. */
export const GrantFields = ({ value, onChange }: Props) => {
  const [typed, setTyped] = useState("");
  const [text] = useDebouncedValue(typed.trim(), typingMs);
  const { data } = useProjectsNamed(text);
  const granted = new Set(value.map(({ id }) => id));
  const others = (data?.data ?? [])
    .filter(({ id }) => !granted.has(id))
    .map(({ id, name }) => ({ value: id, label: name }));
  return (
    <Stack gap={8} role="group" aria-label="Projects">
      <Select
        label="Projects"
        description="In these projects the higher of both roles counts."
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
      {value.map(({ id, role }) => (
        <Group key={id} gap={8} wrap="nowrap">
          <ProjectTitle id={id} />
          <Select
            size="xs"
            w={104}
            aria-label={`Role in ${id}`}
            data={[...projectRoles]}
            value={role}
            allowDeselect={false}
            onChange={(next) => onChange(value.map((one) => (one.id === id ? { id, role: next ?? role } : one)))}
          />
          <CloseButton aria-label={`Remove ${id}`} onClick={() => onChange(value.filter((one) => one.id !== id))} />
        </Group>
      ))}
    </Stack>
  );
};

type DialogProps = { readonly operator: Operator; readonly onClose: () => void; readonly onDone: () => void };

/** Changes the grants of an operator. */
export const GrantsDialog = ({ operator, onClose, onDone }: DialogProps) => {
  const [grants, setGrants] = useState(operator.projects as Grant[]);
  const save = async () => {
    await admin.operators.update(operator.id, { projects: grants });
    onDone();
  };
  return (
    <FormDialog title={`Projects of ${operator.name}`} verb="Save" act={save} onClose={onClose}>
      <GrantFields value={grants} onChange={setGrants} />
    </FormDialog>
  );
};
