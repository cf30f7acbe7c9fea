import type { ProviderView } from "@herald/client";
import { Alert, Group, Stack, Text } from "@mantine/core";
import { admin, useProject } from "../../api/clients.ts";
import { mono } from "../../parts/code.tsx";
import type { FieldsOf } from "../../parts/field-values.ts";
import { Confirm, FormButton } from "../../parts/form.tsx";
import { Time } from "../../parts/format.tsx";
import { Facts, Panel } from "../../parts/page.tsx";
import { Problem } from "../../parts/problem.tsx";
import { useHasRoleHere } from "../../session-context.tsx";
import { useProviders } from "../overview/attention.tsx";
import { providerForms } from "./provider-forms.ts";
import { TestPush } from "./test-push.tsx";
import { VapidKeys } from "./vapid-keys.tsx";

type PanelProps = {
  readonly name: keyof typeof providerForms;
  readonly view: ProviderView | null | undefined;
  readonly error: unknown;
};

const show = (value: unknown): string => (typeof value === "object" ? JSON.stringify(value) : String(value));

const ProviderPanel = ({ name, view, error }: PanelProps) => {
  const { id } = useProject();
  const mayTest = useHasRoleHere("operator");
  const may = useHasRoleHere("admin");
  const { title, empty, fields } = providerForms[name];
  return (
    <Panel
      title={title}
      status={view?.status}
      actions={
        <Group gap={8}>
          {view && mayTest && <TestPush provider={name} />}
          {may && view !== undefined && (
            <FormButton<never>
              label={view ? "Replace" : "Add"}
              title={title}
              verb="Save"
              size={name === "webpush" ? "md" : "lg"}
              fields={fields as FieldsOf<never>}
              // A key of your own is set with its private key, or not at all.
              initial={{ environment: "production", ...view?.settings, public_key: undefined }}
              act={(settings) => admin.providers.set(id, name, settings)}
            />
          )}
          {view && may && (
            <Confirm
              title={`Remove ${title}?`}
              verb="Remove the provider"
              act={() => admin.providers.delete(id, name)}
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
    </Panel>
  );
};

/** In the order of {@link useProviders}. */
const names = ["apns", "fcm", "webpush"] as const;

export default function Providers() {
  const views = useProviders();
  return (
    <Stack>
      {names.map((name, index) => (
        <ProviderPanel key={name} name={name} view={views[index]?.data} error={views[index]?.error} />
      ))}
    </Stack>
  );
}
