import type { Project } from "@herald/client";
import { Button, Group, NumberInput, Stack, Switch, TagsInput, Text } from "@mantine/core";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { admin } from "../../api/clients.ts";
import { problemsOf } from "../../api/problems.ts";
import { useOwnProject } from "../../api/projects.ts";
import { Confirm } from "../../parts/confirm.tsx";
import { Field, Form } from "../../parts/field.tsx";
import { exactTime } from "../../parts/format.tsx";
import { Copyable, Facts, Panel, Problem } from "../../parts/page.tsx";
import { HoursFields, type OwnHours } from "../../parts/quiet-hours.tsx";
import { RoleNote } from "../../parts/role-note.tsx";
import { useHasRole, useHasRoleHere } from "../../session-context.tsx";

/** The fields that show their own problems. */
const marked = ["name", "protected_metadata", "stale_after", "receipts", "quiet_hours/to", "default_time_zone"].map(
  (field) => `#/project/${field}`,
);

const ProjectForm = ({ project }: { readonly project: Project }) => {
  const may = useHasRoleHere("admin");
  const mayDelete = useHasRole("admin");
  const queries = useQueryClient();
  const navigate = useNavigate();
  const [name, setName] = useState(project.name);
  const [open, setOpen] = useState(project.open_registration);
  const [paths, setPaths] = useState(project.protected_metadata);
  const [staleAfter, setStaleAfter] = useState(project.stale_after ?? "");
  const [share, setShare] = useState(Number(project.receipts));
  const [hours, setHours] = useState(project.quiet_hours as OwnHours);
  const [zone, setZone] = useState(project.default_time_zone);
  const [typed, setTyped] = useState("");
  const saving = useMutation({
    mutationFn: () =>
      admin.projects.update(project.id, {
        name,
        open_registration: open,
        protected_metadata: paths,
        stale_after: staleAfter.trim() === "" ? null : staleAfter.trim(),
        receipts: share,
        quiet_hours: hours ?? null,
        default_time_zone: zone.trim(),
      }),
    onSuccess: () => queries.invalidateQueries({ queryKey: ["projects"] }),
  });
  const remove = () => {
    queries.clear();
    void navigate({ to: "/" });
  };
  return (
    <>
      <RoleNote needs="admin" can="change anything here" />
      <div className="columns wide">
        <Stack>
          <Panel title="Project">
            <Form onSubmit={saving.mutate} disabled={!may}>
              <Field label="Name" value={name} onChange={setName} error={problemsOf(saving.error, "#/project/name")} />
              <Switch
                label="Apps can register devices"
                description="Apps call PUT /identification without a credential. Turn it off when your backend registers devices."
                checked={open}
                onChange={(event) => setOpen(event.currentTarget.checked)}
              />
              <TagsInput
                label="Protected metadata"
                description="Paths that apps cannot change, such as plan or billing.plan. Press Enter after each."
                value={[...paths]}
                onChange={setPaths}
                acceptValueOnBlur
                error={problemsOf(saving.error, "#/project/protected_metadata")}
              />
              <Field
                label="Devices become inactive after"
                description="For example 90d. A device that is not seen for this long gets no notifications until it registers again. Empty: never."
                placeholder="never"
                value={staleAfter}
                onChange={setStaleAfter}
                error={problemsOf(saving.error, "#/project/stale_after")}
                maw={240}
              />
              <NumberInput
                label="Devices asked for a receipt, in percent"
                description="A notification can say otherwise. A phone with Android shows nothing of a notification that asks if its app was force-stopped, so asking may lower delivery there."
                value={share * 100}
                onChange={(percent) => setShare(Number(percent) / 100)}
                min={0}
                max={100}
                error={problemsOf(saving.error, "#/project/receipts")}
                maw={240}
              />
              <HoursFields
                value={hours}
                onChange={setHours}
                error={problemsOf(saving.error, "#/project/quiet_hours/to")}
              />
              <Field
                label="Time zone of devices without one"
                description="For notifications that are sent at a local time. An IANA name, such as Europe/Berlin."
                value={zone}
                onChange={setZone}
                error={problemsOf(saving.error, "#/project/default_time_zone")}
                maw={240}
              />
              {saving.error && <Problem error={saving.error} marked={marked} />}
              {may && (
                <Group gap="sm">
                  <Button type="submit" loading={saving.isPending}>
                    Save
                  </Button>
                  {saving.isSuccess && (
                    <Text span c="var(--good)" role="status">
                      Saved.
                    </Text>
                  )}
                </Group>
              )}
            </Form>
          </Panel>
        </Stack>
        <Stack>
          <Panel title="Project">
            <Facts
              facts={{
                Id: <Copyable value={project.id} />,
                ...(project.key && { Key: <Copyable value={project.key} /> }),
                Created: exactTime(project.created_at),
              }}
            />
          </Panel>
          {mayDelete && (
            <Panel title="Delete this project">
              <Stack>
                <Text c="dimmed">
                  This deletes its devices, notifications, tokens and statistics, and cannot be undone.
                </Text>
                <div>
                  <Confirm
                    label="Delete the project"
                    title="Delete this project"
                    verb="Delete the project"
                    size="sm"
                    act={async () => {
                      if (typed !== project.name) throw new Error("The name does not match.");
                      await admin.projects.delete(project.id);
                    }}
                    onDone={remove}
                  >
                    <Field
                      label={`Type the project's name, ${project.name}, to confirm`}
                      value={typed}
                      onChange={setTyped}
                    />
                  </Confirm>
                </div>
              </Stack>
            </Panel>
          )}
        </Stack>
      </div>
    </>
  );
};

export default function General() {
  const { data, error, refetch } = useOwnProject();
  if (error && !data) return <Problem error={error} onRetry={() => void refetch()} />;
  return data ? <ProjectForm key={data.id} project={data} /> : null;
}
