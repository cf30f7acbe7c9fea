import { Button, Modal, NavLink, ScrollArea, Stack, Text } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { useProject } from "./api/clients.ts";
import { useProjectName, useProjectsNamed } from "./api/projects.ts";
import { NewProject } from "./first-project.tsx";
import { Field } from "./parts/field.tsx";
import { Icon } from "./parts/icon.tsx";
import { Problem } from "./parts/problem.tsx";
import { useHasRole } from "./session-context.tsx";

const typingMs = 200;

const Projects = ({ onClose, onNew }: { readonly onClose: () => void; readonly onNew: () => void }) => {
  const { id } = useProject();
  const mayCreate = useHasRole("admin");
  const [typed, setTyped] = useState("");
  const [text] = useDebouncedValue(typed.trim(), typingMs);
  const { data, error } = useProjectsNamed(text);
  return (
    <Stack gap="sm">
      <Field
        aria-label="Find a project by name"
        placeholder="Find a project by name"
        leftSection={<Icon name="trace" size={16} />}
        value={typed}
        onChange={setTyped}
        data-autofocus
      />
      {error && <Problem error={error} />}
      {data?.data.length === 0 && <Text c="dimmed">No project names contain this.</Text>}
      <ScrollArea.Autosize mah="50dvh">
        {data?.data.map((project) => (
          <NavLink
            key={project.id}
            component={Link}
            to={`/p/${project.id}`}
            onClick={onClose}
            label={project.name}
            dir="auto"
            rightSection={project.id === id && <Icon name="check" size={16} />}
          />
        ))}
      </ScrollArea.Autosize>
      {data?.more && <Text c="dimmed">There are more. Type part of the name.</Text>}
      {mayCreate && (
        <Button variant="default" leftSection={<Icon name="plus" size={16} />} onClick={onNew}>
          New project
        </Button>
      )}
    </Stack>
  );
};

/** Shows the current project, and switches to another. */
export const ProjectMenu = () => {
  const name = useProjectName();
  const [dialog, setDialog] = useState<"projects" | "new" | undefined>();
  const close = () => setDialog(undefined);
  return (
    <>
      <Button
        variant="default"
        fullWidth
        justify="space-between"
        fw={400}
        px={10}
        rightSection={<Icon name="chevron" size={16} />}
        aria-label={`Project: ${name}`}
        onClick={() => setDialog("projects")}
      >
        {name}
      </Button>
      <Modal opened={dialog === "projects"} onClose={close} title="Projects">
        {dialog === "projects" && <Projects onClose={close} onNew={() => setDialog("new")} />}
      </Modal>
      <NewProject opened={dialog === "new"} onClose={close} />
    </>
  );
};
