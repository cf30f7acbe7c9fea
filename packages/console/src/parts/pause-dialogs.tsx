import type { NewPause, Project } from "@herald/client";
import { admin } from "../api/clients.ts";
import { FormDialog } from "./form.tsx";
import { pauseReason, whileResumed } from "./pause-reason.ts";

type Props = { readonly project: Project; readonly onClose: () => void };

export const PauseDialog = ({ project: { id, name }, onClose }: Props) => (
  <FormDialog<NewPause, Project>
    title={`Pause all sends of ${name}?`}
    verb="Pause all sends"
    danger
    about="Nothing more of this project is sent until somebody resumes it. What is sent meanwhile is accepted and waits. Times to live run on."
    fields={{
      reason: pauseReason,
      until: { label: "Until", hint: "When it resumes by itself. Empty: when somebody resumes it.", as: "time" },
    }}
    act={(pause) => admin.projects.pause(id, pause)}
    onDone={onClose}
    onClose={onClose}
  />
);

export const ResumeDialog = ({ project: { id, name, paused }, onClose }: Props) => {
  const isAll = paused?.of === "installation";
  return (
    <FormDialog
      title={`Resume the sends of ${isAll ? "all projects" : name}?`}
      verb="Resume"
      about={whileResumed}
      act={(): Promise<unknown> => (isAll ? admin.installation.resume() : admin.projects.resume(id))}
      onDone={onClose}
      onClose={onClose}
    />
  );
};
