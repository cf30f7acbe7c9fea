import { Button, Fieldset, Group, SegmentedControl, Stack } from "@mantine/core";
import { useState } from "react";
import { useProject } from "../api/clients.ts";
import { useProjectName } from "../api/projects.ts";
import { count } from "../parts/format.tsx";
import { Icon } from "../parts/icon.tsx";
import { MessageFields } from "../parts/message-fields.tsx";
import { Note, Page, Panel } from "../parts/page.tsx";
import { RoleNote } from "../parts/role-note.tsx";
import { useMayWrite } from "../session-context.tsx";
import { Audience } from "./compose/audience.tsx";
import { type Draft, isEmpty, useDraft } from "./compose/draft.ts";
import { FileDialog } from "./compose/file-dialog.tsx";
import { FileFields } from "./compose/file-fields.tsx";
import { KindField } from "./compose/kind.tsx";
import { hasContent, moreProblem, notificationOf } from "./compose/notification-of.ts";
import { Presentation } from "./compose/presentation.tsx";
import { composeProblems } from "./compose/problems.ts";
import { Reactions } from "./compose/reactions.tsx";
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
  const total = counted?.total;
  const badMore = moreProblem(draft);
  const send = notificationOf(draft, first);
  const isWritten = hasContent(send) && badMore === undefined;
  const close = () => setDialog(undefined);
  const discard = () => {
    clear();
    setFile(undefined);
    setRecipient(undefined);
  };

  return (
    <Page
      title="Compose"
      actions={
        isSender &&
        !isEmpty(draft) && (
          <Button variant="subtle" color="gray" onClick={discard}>
            Discard
          </Button>
        )
      }
    >
      <RoleNote needs="operator" can="send" />
      <div className="columns wide">
        <Fieldset variant="unstyled" disabled={!isSender}>
          <Stack>
            <Panel title="Message">
              <Stack gap="sm">
                <TemplateFields draft={draft} change={change} problemOf={field} />
                <MessageFields
                  value={draft}
                  change={change}
                  problemOf={field}
                  placeholders={{
                    title: template?.title,
                    body: template?.body,
                    link: template?.link_to ?? "https://… or /path/in/the/app",
                    image: template?.image,
                    more: '{ "data": { "order": "17" }, "priority": "normal" }',
                  }}
                  aboutMore="Any field of POST /api/v1/notifications: data, badge, sound, priority, ttl, collapse_id, localizations …"
                  badMore={badMore}
                  besideTitle={<Note>{draft.title.length} / 256</Note>}
                >
                  <Presentation draft={draft} change={change} problem={field} />
                  <Reactions draft={draft} change={change} problem={field} />
                </MessageFields>
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
            ...{ title: draft.title, body: draft.body, image: draft.image, link: draft.link },
            buttons: draft.buttons.flatMap(({ title }) => title || []),
          }}
        />
      </div>
      {dialog === "send" && !isFile && counted && (
        <SendDialog draft={draft} devices={counted} onClose={close} onSent={clear} />
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
