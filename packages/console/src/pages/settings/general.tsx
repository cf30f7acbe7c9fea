import type { Project, ProjectChange } from "@herald/client";
import { Button, Group, Stack, Text } from "@mantine/core";
import { useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { admin } from "../../api/clients.ts";
import { useOwnProject } from "../../api/projects.ts";
import { Copyable } from "../../parts/code.tsx";
import { Form } from "../../parts/field.tsx";
import type { FieldsOf } from "../../parts/field-values.ts";
import { Confirm, FormButton, useForm } from "../../parts/form.tsx";
import { count, exactTime } from "../../parts/format.tsx";
import { Facts, Panel } from "../../parts/page.tsx";
import { Problem } from "../../parts/problem.tsx";
import { quietHours } from "../../parts/quiet-hours.tsx";
import { useHasRole, useHasRoleHere } from "../../session-context.tsx";

const narrow = { maw: 240 };

const fields: FieldsOf<ProjectChange> = {
  name: { label: "Name", required: true },
  open_registration: {
    label: "Apps can register devices",
    hint: "Apps call PUT /identification without a credential. Turn it off when your backend registers devices.",
    as: "switch",
  },
  protected_metadata: {
    label: "Protected metadata",
    hint: "Paths that apps cannot change, such as plan or billing.plan. Press Enter after each.",
    as: "tags",
  },
  stale_after: {
    label: "Devices become inactive after",
    hint: "For example 90d. A device that is not seen for this long gets no notifications until it registers again. Empty: never.",
    placeholder: "never",
    empty: null,
    props: narrow,
  },
  receipts: {
    label: "Devices asked for a receipt, in percent",
    hint: "A notification can say otherwise. A phone with Android shows nothing of a notification that asks if its app was force-stopped, so asking may lower delivery there.",
    as: "percent",
    required: true,
    props: { ...narrow, min: 0, max: 100 },
  },
  quiet_hours: quietHours(false),
  default_time_zone: {
    label: "Time zone of devices without one",
    hint: "For notifications that are sent at a local time. An IANA name, such as Europe/Berlin.",
    required: true,
    props: narrow,
  },
};

/** In a form of its own: a page that was opened before somebody set a limit must not remove it with another change. */
const ApprovalPanel = ({ project: { id, approval } }: { readonly project: Project }) => (
  <Panel
    title="Approval"
    actions={
      useHasRoleHere("admin") && (
        <FormButton<{ readonly devices?: number }, Project>
          label="Change"
          button={{ "aria-label": "Change: Approval" }}
          title="Approval of large sends"
          verb="Save"
          fields={{
            devices: {
              label: "Approval above, in devices",
              hint: "At least 1,000. Empty: no sends wait. Only an admin of Herald can raise or remove it.",
              placeholder: "off",
              as: "number",
              props: { allowNegative: false, thousandSeparator: ",", hideControls: true },
            },
          }}
          initial={{ devices: approval?.devices }}
          act={({ devices }) => admin.projects.update(id, { approval: devices === undefined ? null : { devices } })}
        />
      )
    }
  >
    <Text c="dimmed">
      {approval
        ? `Sends to more than ${count(approval.devices)} devices wait until an operator other than their sender approves them.`
        : "No sends wait for approval."}
    </Text>
  </Panel>
);

const ProjectForm = ({ project }: { readonly project: Project }) => {
  const may = useHasRoleHere("admin");
  const mayDelete = useHasRole("admin");
  const queries = useQueryClient();
  const navigate = useNavigate();
  const { acting, inputs, isReady } = useForm<ProjectChange, Project>({
    fields,
    initial: project,
    act: (change) => admin.projects.update(project.id, change),
  });
  return (
    <div className="columns wide">
      <Panel title="Project">
        <Form onSubmit={() => acting.mutate()} disabled={!may}>
          {inputs}
          {may && (
            <Group gap="sm">
              <Button type="submit" loading={acting.isPending} disabled={!isReady}>
                Save
              </Button>
              {acting.isSuccess && (
                <Text span c="var(--good)" role="status">
                  Saved.
                </Text>
              )}
            </Group>
          )}
        </Form>
      </Panel>
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
        <ApprovalPanel project={project} />
        {mayDelete && (
          <Panel title="Delete this project">
            <Stack align="start">
              <Text c="dimmed">
                This deletes its devices, notifications, tokens and statistics, and cannot be undone.
              </Text>
              <Confirm<{ name: string }, void>
                label="Delete the project"
                button={{ size: "sm" }}
                title="Delete this project"
                verb="Delete the project"
                fields={{ name: { label: `Type the project's name, ${project.name}, to confirm` } }}
                act={async ({ name }) => {
                  if (name !== project.name) throw new Error("The name does not match.");
                  await admin.projects.delete(project.id);
                }}
                onDone={() => {
                  queries.clear();
                  void navigate({ to: "/" });
                }}
              />
            </Stack>
          </Panel>
        )}
      </Stack>
    </div>
  );
};

export default function General() {
  const { data, error, refetch } = useOwnProject();
  if (error && !data) return <Problem error={error} onRetry={() => void refetch()} />;
  return data ? <ProjectForm key={data.id} project={data} /> : null;
}
