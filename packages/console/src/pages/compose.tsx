import { Button, Fieldset, Group, SegmentedControl, Stack, Text } from "@mantine/core";
import { useState } from "react";
import { useProject } from "../api/clients.ts";
import { useProjectName } from "../api/projects.ts";
import type { FieldsOf } from "../parts/field-values.ts";
import { FormFields } from "../parts/fields.tsx";
import { count } from "../parts/format.tsx";
import { Icon } from "../parts/icon.tsx";
import { moreField } from "../parts/message-fields.ts";
import { Note, Page, Panel } from "../parts/page.tsx";
import { useMayWrite } from "../session-context.tsx";
import { Audience } from "./compose/audience.tsx";
import { ButtonInputs } from "./compose/button-fields.tsx";
import { buttonValues } from "./compose/button-values.ts";
import { contentFields } from "./compose/content-fields.ts";
import { type Draft, isEmpty, useDraft } from "./compose/draft.ts";
import { FileDialog } from "./compose/file-dialog.tsx";
import { FileFields } from "./compose/file-fields.tsx";
import { KindField } from "./compose/kind.tsx";
import { hasContent, moreProblem, notificationOf } from "./compose/notification-of.ts";
import { composeProblems } from "./compose/problems.ts";
import { SendDialog } from "./compose/send-dialog.tsx";
import { Targets } from "./compose/targets.tsx";
import { TemplateFields } from "./compose/template.tsx";
import { TestDialog } from "./compose/test-dialog.tsx";
import { useDryRun, useTemplateContent } from "./compose/use-dry-run.ts";
import { When } from "./compose/when.tsx";
import type { FileRecipient } from "./recipients-file/read-file.ts";

const Compose = ({ id }: { readonly id: string }) => {
  const { draft, change, clear } = useDraft(id);
  const [dialog, setDialog] = useState<"send" | "test" | undefined>();
  const [file, setFile] = useState<File | undefined>();
  const [recipient, setRecipient] = useState<FileRecipient | undefined>();
  const isFile = draft.from === "file";
  const first = isFile ? recipient : undefined;
  const app = useProjectName();
  const isSender = useMayWrite();
  const { dryRun, rendered, error, counted } = useDryRun(draft, first, isSender);
  const template = useTemplateContent(draft.template);
  const problems = composeProblems(error, draft);
  const field = problems.of;
  const total = counted?.devices.total;
  const send = notificationOf(draft, first);
  const isWritten = hasContent(send) && moreProblem(draft) === undefined;
  const isDrawn = draft.buttons.length > 0 || Number(send.receipts ?? 0) > 0;
  const fields: FieldsOf<Draft> = {
    ...contentFields,
    title: {
      ...contentFields.title,
      placeholder: template?.title,
      props: { maxLength: 300, rightSectionWidth: 64, rightSection: <Note>{draft.title.length} / 256</Note> },
    },
    body: { ...contentFields.body, placeholder: template?.body },
    link_to: { ...contentFields.link_to, placeholder: template?.link_to ?? "https://… or /path/in/the/app" },
    image: { ...contentFields.image, ...(template?.image && { placeholder: template.image }) },
    buttons: { ...contentFields.buttons, as: { ...buttonValues, input: ButtonInputs } },
    more: moreField(
      "Any field of POST /api/v1/notifications: data, badge, sound, priority, ttl, collapse_id, localizations …",
      '{ "data": { "order": "17" }, "priority": "normal" }',
      (more) => moreProblem({ more }),
    ),
  };
  const close = () => setDialog(undefined);
  const discard = () => {
    clear();
    setFile(undefined);
    setRecipient(undefined);
  };

  return (
    <Page
      title="Compose"
      role={{ needs: "operator", can: "send" }}
      actions={
        isSender &&
        !isEmpty(draft) && (
          <Button variant="subtle" color="gray" onClick={discard}>
            Discard
          </Button>
        )
      }
    >
      <div className="columns wide">
        <Fieldset variant="unstyled" disabled={!isSender}>
          <Stack>
            <Panel title="Message">
              <Stack gap="sm">
                <TemplateFields draft={draft} change={change} problemOf={field} />
                <FormFields fields={fields} values={draft} change={change} problemOf={field} />
                {isDrawn && (
                  <Text c="var(--warn)">
                    Android: the app draws this notification itself. A phone on which the app was force-stopped, or that
                    its vendor restricts, shows nothing of it.
                  </Text>
                )}
              </Stack>
            </Panel>
            <Panel
              title="Who gets it"
              actions={
                <SegmentedControl
                  size="xs"
                  aria-label="Who gets it"
                  value={draft.from}
                  onChange={(from) => change({ from: from as Draft["from"] })}
                  data={[
                    { value: "targets", label: "Matching devices" },
                    { value: "file", label: "A file" },
                  ]}
                />
              }
            >
              <Stack gap="sm">
                <KindField draft={draft} change={change} error={field("kind")} />
                {isFile ? (
                  <FileFields
                    change={change}
                    file={file}
                    first={first}
                    onFile={(chosen, read) => {
                      setFile(chosen);
                      setRecipient(read);
                    }}
                    error={field("recipients")}
                  />
                ) : (
                  <Targets value={draft.targets} onChange={(targets) => change({ targets })} error={field("targets")} />
                )}
              </Stack>
            </Panel>
            <When draft={draft} change={change} problemOf={field} />
            <Group gap={10} justify="flex-end">
              <Button
                variant="default"
                size="md"
                onClick={() => setDialog("test")}
                disabled={!isWritten}
                leftSection={<Icon name="devices" />}
              >
                Send to one device first
              </Button>
              <Button
                size="md"
                onClick={() => setDialog("send")}
                disabled={!isWritten || Boolean(error) || (isFile ? !first : !total)}
                leftSection={<Icon name={draft.sendAt ? "clock" : "send"} />}
              >
                {isFile
                  ? "Check the file…"
                  : total === undefined
                    ? "Review and send"
                    : `Send to ${count(total)} ${total === 1 ? "device" : "devices"}…`}
              </Button>
            </Group>
          </Stack>
        </Fieldset>
        <Audience
          dryRun={dryRun}
          rendered={rendered}
          error={error}
          problems={problems}
          hasRecipients={isFile ? first !== undefined : (send.targets ?? send.recipients) !== undefined}
          isFile={isFile}
          app={app}
          typed={{
            ...{ title: draft.title, body: draft.body, image: draft.image, link: draft.link_to },
            buttons: draft.buttons.flatMap(({ title }) => (title as string) || []),
          }}
        />
      </div>
      {dialog === "send" && !isFile && counted && (
        <SendDialog draft={draft} dryRun={counted} onClose={close} onSent={clear} />
      )}
      {dialog === "send" && file && first && (
        <FileDialog draft={draft} file={file} first={first} onClose={close} onSent={discard} />
      )}
      {dialog === "test" && <TestDialog draft={draft} first={first} onClose={close} />}
    </Page>
  );
};

/** Each project has a draft of its own. */
export default function ComposePage() {
  const { id } = useProject();
  return <Compose key={id} id={id} />;
}
