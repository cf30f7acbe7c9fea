import type { ProviderView } from "@herald/client";
import { Alert, Button, Group, Stack, Text } from "@mantine/core";
import { useState } from "react";
import { admin, useProject } from "../../api/clients.ts";
import { useRefresh } from "../../api/read.ts";
import { Confirm } from "../../parts/confirm.tsx";
import { Time } from "../../parts/format.tsx";
import { Facts, mono, Panel, Problem } from "../../parts/page.tsx";
import { RoleNote } from "../../parts/role-note.tsx";
import { SmallButton } from "../../parts/small-button.tsx";
import { useHasRoleHere } from "../../session-context.tsx";
import { useProviders } from "../overview/attention.tsx";
import { ApnsForm, FcmForm, WebPushForm } from "./provider-forms.tsx";
import { TestPush } from "./test-push.tsx";
import { VapidKeys } from "./vapid-keys.tsx";

/** The providers in the order of {@link useProviders}. `empty`: shown while the project does not have it. */
const providers = [
  {
    name: "apns",
    title: "Apple Push Notification service",
    empty: "iOS devices get no notifications until you add a key: a .p8 file from developer.apple.com, under Keys.",
    Form: ApnsForm,
  },
  {
    name: "fcm",
    title: "Firebase Cloud Messaging",
    empty:
      "Android devices get no notifications until you add a service account: Firebase, Project settings, Service accounts.",
    Form: FcmForm,
  },
  {
    name: "webpush",
    title: "Web Push",
    empty: "Browsers get no notifications until you add it. Herald creates the keys and needs a contact address.",
    Form: WebPushForm,
  },
] as const;

type PanelProps = {
  readonly provider: (typeof providers)[number];
  readonly view: ProviderView | null | undefined;
  readonly error: unknown;
};

const show = (value: unknown): string => (typeof value === "object" ? JSON.stringify(value) : String(value));

const ProviderPanel = ({ provider: { name, title, empty, Form }, view, error }: PanelProps) => {
  const { id } = useProject();
  const changed = useRefresh(id, "providers");
  const mayTest = useHasRoleHere("operator");
  const may = useHasRoleHere("admin");
  const [dialog, setDialog] = useState<"edit" | "test" | undefined>();
  const refresh = () => {
    setDialog(undefined);
    changed();
  };
  return (
    <Panel
      title={title}
      status={view?.status}
      actions={
        <Group gap={8}>
          {view && mayTest && (
            <Button size="compact-sm" variant="light" onClick={() => setDialog("test")}>
              Send a test push
            </Button>
          )}
          {may && view !== undefined && (
            <SmallButton onClick={() => setDialog("edit")}>{view ? "Replace" : "Add"}</SmallButton>
          )}
          {view && may && (
            <Confirm
              title={`Remove ${title}?`}
              verb="Remove the provider"
              act={() => admin.providers.delete(id, name)}
              onDone={refresh}
              about="Its devices get no notifications until you add it again. They stay registered."
            />
          )}
        </Group>
      }
    >
      {error ? <Problem error={error} /> : null}
      {view === null && <Text c="dimmed">{empty}</Text>}
      {view && (
        <Stack>
          {view.status === "paused" && (
            <Alert title={view.paused_reason}>
              <Text>{view.paused_detail}</Text>
              {view.next_trial_at && (
                <Text c="dimmed">
                  Herald tries a waiting push <Time at={view.next_trial_at} />, and resumes if it is accepted. New
                  settings resume at once.
                </Text>
              )}
            </Alert>
          )}
          {view.problems?.map((problem) => (
            <Alert key={problem.reason + problem.host} title={`${problem.reason} ${problem.host}`}>
              <Text>{problem.detail}</Text>
              <Text c="dimmed">
                since <Time at={problem.since} />
              </Text>
            </Alert>
          ))}
          <Facts
            facts={{
              ...Object.fromEntries(
                Object.entries(view.settings)
                  .filter(([key]) => key !== "ca" && (name !== "webpush" || !key.includes("key")))
                  .map(([key, value]) => [key, mono(show(value))]),
              ),
              Updated: <Time at={view.updated_at} />,
            }}
          />
          {name === "webpush" && <VapidKeys />}
        </Stack>
      )}
      {dialog === "edit" && (
        <Form settings={view?.settings ?? {}} onClose={() => setDialog(undefined)} onDone={refresh} />
      )}
      {dialog === "test" && <TestPush provider={name} onClose={() => setDialog(undefined)} />}
    </Panel>
  );
};

export default function Providers() {
  const views = useProviders();
  return (
    <Stack>
      <RoleNote needs="admin" can="change anything here" />
      {providers.map((provider, index) => (
        <ProviderPanel key={provider.name} provider={provider} view={views[index]?.data} error={views[index]?.error} />
      ))}
    </Stack>
  );
}
