import { Button, Modal } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { useProject } from "./api/clients.ts";
import { useProjectName, useProjectsNamed } from "./api/projects.ts";
import { NewProject } from "./first-project.tsx";
import { Field } from "./parts/field.tsx";
import { Icon } from "./parts/icon.tsx";
import { Problem } from "./parts/page.tsx";

const typingMs = 200;

const Projects = ({ onClose, onNew }: { readonly onClose: () => void; readonly onNew: () => void }) => {
  const { id } = useProject();
  const [typed, setTyped] = useState("");
  const [text] = useDebouncedValue(typed.trim(), typingMs);
  const { data, error } = useProjectsNamed(text);
  return (
    <div className="stack fields">
      <Field
        aria-label="Find a project by its name"
        placeholder="Find a project by its name"
        leftSection={<Icon name="trace" size={16} />}
        value={typed}
        onChange={setTyped}
        data-autofocus
      />
      {error && <Problem error={error} />}
      {data?.data.length === 0 && <p className="muted text">No project has this in its name.</p>}
      <ul className="project-list">
        {data?.data.map((project) => (
          <li key={project.id}>
            <Link to="/p/$project" params={{ project: project.id }} onClick={onClose}>
              <span className="break grow" dir="auto">
                {project.name}
              </span>
              {project.id === id && <Icon name="check" size={16} />}
            </Link>
          </li>
        ))}
      </ul>
      {data?.more && <p className="muted text">There are more: type a part of the name.</p>}
      <Button variant="default" leftSection={<Icon name="plus" size={16} />} onClick={onNew}>
        New project
      </Button>
    </div>
  );
};

/** Shows the current project, and switches to another. */
export const ProjectMenu = () => {
  const name = useProjectName();
  const [dialog, setDialog] = useState<"projects" | "new" | undefined>();
  const close = () => setDialog(undefined);
  return (
    <>
      <button
        type="button"
        className="project-button"
        aria-label={`Project: ${name}`}
        onClick={() => setDialog("projects")}
      >
        <span className="cut grow">{name}</span>
        <Icon name="chevron" size={16} />
      </button>
      <Modal opened={dialog === "projects"} onClose={close} title="Projects">
        {dialog === "projects" && <Projects onClose={close} onNew={() => setDialog("new")} />}
      </Modal>
      <NewProject opened={dialog === "new"} onClose={close} />
    </>
  );
};
