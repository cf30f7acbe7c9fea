import type { Template } from "@herald/client";
import { Button, Fieldset, NativeSelect, Stack, Text } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { useNavigate, useParams } from "@tanstack/react-router";
import { useState } from "react";
import { useProject } from "../api/clients.ts";
import { orNull, problemsOf } from "../api/problems.ts";
import { useProjectName } from "../api/projects.ts";
import { useActs } from "../api/read.ts";
import type { FieldsOf } from "../parts/field-values.ts";
import { FormFields } from "../parts/fields.tsx";
import { Confirm } from "../parts/form.tsx";
import { Time } from "../parts/format.tsx";
import { isJsonObject } from "../parts/json.ts";
import { messageFields, moreField } from "../parts/message-fields.ts";
import { Facts, Page, Panel } from "../parts/page.tsx";
import { Preview } from "../parts/preview.tsx";
import { Problem } from "../parts/problem.tsx";
import { useMayWrite } from "../session-context.tsx";
import { contentOfTemplate, type Edited, editedOf, moreFieldsOf, newTemplate, samplesOf } from "./template/content.ts";
import { VariableFields } from "./template/variables.tsx";

/** Long enough that typing does not render at every key. */
const typingMs = 400;

const Versions = ({ name }: { readonly name: string }) => {
  const { id, herald } = useProject();
  const { data } = useQuery({
    queryKey: [id, "templates", name, "versions"],
    queryFn: ({ signal }) => herald.templates.versions(name, { signal, perPage: 10 }).page(),
  });
  if (!data || data.data.length === 0) return null;
  return (
    <Panel title="Versions">
      <Facts
        facts={Object.fromEntries(
          data.data.map(({ version, author, published_at: at }) => [
            version,
            <>
              <Time at={at} /> <span className="muted break">{author.name ?? author.id}</span>
            </>,
          ]),
        )}
      />
    </Panel>
  );
};

const fields: FieldsOf<Edited> = {
  ...messageFields,
  title: { ...messageFields.title, placeholder: "Order {{ order }} has shipped" },
  link_to: { ...messageFields.link_to, placeholder: "/orders/{{ order }}" },
  more: moreField(
    "localizations, data, badge, sound, priority, ttl …: any field of a notification but targets and send_at",
    '{ "localizations": { "de": { "title": "Bestellung {{ order }}" } } }',
    (more) =>
      moreFieldsOf({ more }) === undefined ? 'Write a JSON object, such as { "sound": "default" }' : undefined,
  ),
};

const aboutOf = (stored: Template | null): string => {
  if (stored === null) return "Not stored yet.";
  if (stored.published === undefined) return "A draft: sends cannot use it before it is published.";
  return `Sends use version ${stored.published}.${stored.changed ? " The draft differs from it." : ""}`;
};

const Editor = ({ name, stored }: { readonly name: string; readonly stored: Template | null }) => {
  const { id, herald } = useProject();
  const app = useProjectName();
  const may = useMayWrite();
  const navigate = useNavigate();
  const [edited, setEdited] = useState<Edited>(() => (stored ? editedOf(stored) : newTemplate));
  const [locale, setLocale] = useState("");
  const [settled] = useDebouncedValue(edited, typingMs);
  const change = (changes: Partial<Edited>) => setEdited((now) => ({ ...now, ...changes }));
  const acting = useActs();
  const more = moreFieldsOf(edited);
  const isReady = more !== undefined && (edited.title !== "" || edited.body !== "" || more.silent === true);
  const preview = useQuery({
    queryKey: [id, "template-preview", settled, locale],
    queryFn: ({ signal }) =>
      herald.templates.preview(
        name,
        { content: contentOfTemplate(settled), variables: samplesOf(settled), ...(locale !== "" && { locale }) },
        { signal },
      ),
    enabled: (settled.title !== "" || settled.body !== "") && moreFieldsOf(settled) !== undefined,
    placeholderData: keepPreviousData,
    retry: false,
  });
  const problemAt = (path: string): string | undefined =>
    problemsOf(preview.error, `#/preview/content/${path}`) ??
    problemsOf(preview.error, `#/preview/${path}`) ??
    problemsOf(acting.error, `#/template/${path}`);
  const markedAt = (place: string) => [
    ...[...Object.keys(messageFields), "variables"].map((field) => `${place}/${field}`),
    "#/preview/variables",
  ];
  // An app with the kit draws what has receipts or buttons.
  const shownOf = (platform: "ios" | "android" | "web") =>
    (platform === "android" && preview.data?.drawn) || preview.data?.[platform];
  const save = () => herald.templates.put(name, contentOfTemplate(edited));
  const locales = isJsonObject(more?.localizations) ? Object.keys(more.localizations) : [];
  return (
    <Page
      title={name}
      about={aboutOf(stored)}
      role={{ needs: "operator", can: "change anything here" }}
      actions={
        may && (
          <>
            {stored && (
              <Confirm
                title={`Delete the template ${name}?`}
                verb="Delete the template"
                button={{ size: "sm" }}
                act={() => herald.templates.delete(name)}
                onDone={() => void navigate({ to: `/p/${id}/templates` })}
                about="Its versions go with it, and sends that name it are refused. Notifications already accepted keep their texts."
              />
            )}
            <Button
              variant="default"
              disabled={!isReady}
              loading={acting.isPending}
              onClick={() => acting.mutate(save)}
            >
              Save draft
            </Button>
            <Button
              disabled={!isReady}
              loading={acting.isPending}
              onClick={() =>
                acting.mutate(async () => {
                  await save();
                  await herald.templates.publish(name);
                })
              }
            >
              Publish
            </Button>
          </>
        )
      }
    >
      {acting.error && <Problem error={acting.error} marked={markedAt("#/template")} />}
      <div className="columns wide">
        <Fieldset variant="unstyled" disabled={!may}>
          <Stack>
            <Panel title="Message">
              <Stack gap="sm">
                <FormFields fields={fields} values={edited} change={change} problemOf={problemAt} />
              </Stack>
            </Panel>
            <Panel title="Variables">
              <Stack gap="sm">
                <VariableFields
                  value={edited.variables}
                  onChange={(variables) => change({ variables })}
                  problemOf={(variable) => problemAt(`variables/${variable}`)}
                />
              </Stack>
            </Panel>
            {stored && <Versions name={name} />}
          </Stack>
        </Fieldset>
        <Stack className="sticky">
          <Preview
            payloadOf={(platform) => shownOf(platform)?.payload}
            typed={{ title: edited.title, body: edited.body, image: edited.image, link: edited.link_to }}
            app={app}
          >
            {(platform) => {
              const shown = shownOf(platform);
              return (
                <>
                  {locales.length > 0 && (
                    <NativeSelect
                      label="Language"
                      value={locale}
                      onChange={(event) => setLocale(event.currentTarget.value)}
                      data={[{ value: "", label: "the common text" }, ...locales]}
                    />
                  )}
                  {shown && <Text c="dimmed">{shown.bytes} bytes</Text>}
                  {shown?.problems.map((problem) => (
                    <Text key={problem} c="var(--bad)">
                      {problem}
                    </Text>
                  ))}
                </>
              );
            }}
          </Preview>
          {preview.error && !acting.error && <Problem error={preview.error} marked={markedAt("#/preview/content")} />}
        </Stack>
      </div>
    </Page>
  );
};

export default function TemplatePage() {
  const { id, herald } = useProject();
  const { template: name = "" } = useParams({ strict: false }) as { template?: string };
  const { data, error } = useQuery({
    queryKey: [id, "templates", "one", name],
    queryFn: ({ signal }) => orNull(herald.templates.get(name, { signal })),
    // What is typed must not be replaced while it is typed.
    staleTime: Number.POSITIVE_INFINITY,
  });
  if (error) return <Problem error={error} />;
  if (data === undefined) return null;
  return <Editor key={name} name={name} stored={data} />;
}
