import type { Pause, Project, ProjectPause } from "@herald/client";
import { Alert, type AlertProps, type ButtonProps, Group } from "@mantine/core";
import { lazy, Suspense, useState } from "react";
import { useOwnProject } from "../api/projects.ts";
import { useHasRole, useMayWrite } from "../session-context.tsx";
import { exactTime, Time } from "./format.tsx";
import { Icon } from "./icon.tsx";
import { SmallButton } from "./small-button.tsx";

/** With their forms, which are loaded when somebody pauses or resumes. */
const dialogs = () => import("./pause-dialogs.tsx");
const PauseDialog = lazy(() => dialogs().then(({ PauseDialog }) => ({ default: PauseDialog })));
const ResumeDialog = lazy(() => dialogs().then(({ ResumeDialog }) => ({ default: ResumeDialog })));

type PausedProps = AlertProps & {
  readonly what: string;
  readonly paused: Pause & Partial<ProjectPause>;
};

/** Says that something is paused: since when, who did it and why. */
export const PausedAlert = ({ what, paused: { at, by, reason, until }, children, ...alert }: PausedProps) => (
  <Alert icon={<Icon name="warning" />} color="var(--warn)" {...alert}>
    <Group gap="8px 16px">
      <span className="grow break">
        <b>{what} paused.</b> <Time at={at} /> by {by ? <bdi>{by.name ?? by.id}</bdi> : "its rollout"}
        {until && `, until ${exactTime(until)}`}
        {reason && (
          <>
            : <bdi>{reason}</bdi>
          </>
        )}
      </span>
      {children}
    </Group>
  </Alert>
);

type ButtonOf = Pick<ButtonProps, "size"> & { readonly project: Project; readonly resumes?: boolean };

/** A button whose dialog is about the project. */
const DialogButton = ({ project, resumes = false, ...button }: ButtonOf) => {
  const [opened, setOpened] = useState(false);
  const Dialog = resumes ? ResumeDialog : PauseDialog;
  return (
    <>
      <SmallButton
        {...button}
        {...(!resumes && { variant: "outline", color: "var(--bad)" })}
        onClick={() => setOpened(true)}
      >
        {resumes ? "Resume" : "Pause all sends"}
      </SmallButton>
      {opened && (
        <Suspense>
          <Dialog project={project} onClose={() => setOpened(false)} />
        </Suspense>
      )}
    </>
  );
};

/** Stops all sends of the page's project. Hidden while they are paused: then the banner resumes them. */
export const PauseSendsButton = ({ size }: Pick<ButtonProps, "size">) => {
  const { data: project } = useOwnProject();
  return useMayWrite() && project && !project.paused && <DialogButton project={project} size={size} />;
};

/** Stands on every page of a project whose sends are paused. */
export const PauseBanner = () => {
  const { data: project } = useOwnProject();
  const isAdmin = useHasRole("admin");
  const mayWrite = useMayWrite();
  if (!project?.paused) return null;
  const isAll = project.paused.of === "installation";
  return (
    <PausedAlert
      what={isAll ? "The sends of all projects are" : "All sends of this project are"}
      paused={project.paused}
      radius={0}
    >
      {(isAll ? isAdmin : mayWrite) && <DialogButton project={project} resumes />}
    </PausedAlert>
  );
};
