import { Button, Group, Stack, Text } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { useProject } from "../api/clients.ts";
import { problemsOf } from "../api/problems.ts";
import { useProjectName } from "../api/projects.ts";
import { count } from "../parts/format.tsx";
import { Icon } from "../parts/icon.tsx";
import { MessageFields } from "../parts/message-fields.tsx";
import { Note, Page, Panel } from "../parts/page.tsx";
import { useMayWrite } from "../session-context.tsx";
import { Audience } from "./compose/audience.tsx";
import { isEmpty, moreOf, notificationOf, showsNothing, useDraft } from "./compose/draft.ts";
import { Presentation } from "./compose/presentation.tsx";
import { Reactions } from "./compose/reactions.tsx";
import { SendDialog } from "./compose/send-dialog.tsx";
import { Targets } from "./compose/targets.tsx";
import { TemplateFields } from "./compose/template.tsx";
import { TestDialog } from "./compose/test-dialog.tsx";
import { When } from "./compose/when.tsx";

/** Long enough that typing does not start a dry run at every key: dry runs have a quota. */
const typingMs = 600;

const Compose = ({ id }: { readonly id: string }) => {
  const { herald } = useProject();
  const { draft, change, clear } = useDraft(id);
  const [dialog, setDialog] = useState<"send" | "test" | undefined>();
  const [settled] = useDebouncedValue(draft, typingMs);
  const hasTargets = draft.targets.length > 0;
  const hasContent = draft.template !== "" || draft.title !== "" || draft.body !== "" || showsNothing(draft);
  const app = useProjectName();
  const dryRun = useQuery({
    queryKey: [id, "dry-run", settled],
    queryFn: ({ signal }) => {
      const { send_at: _, ...notification } = notificationOf(settled);
      // The dry run counts devices before a title or body is typed, but the API requires one.
      const worded =
        settled.title || settled.body || settled.template || showsNothing(settled)
          ? notification
          : { ...notification, body: "…" };
      return herald.notifications.dryRun(worded, { signal });
    },
    enabled: settled.targets.length > 0 && moreOf(settled) !== undefined,
    placeholderData: keepPreviousData,
    staleTime: 30_000,
  });
  const { error } = dryRun;
  const field = (name: string) => problemsOf(error, `#/notification/${name}`);
  const counted = dryRun.data && !dryRun.isPlaceholderData && settled === draft ? dryRun.data.devices : undefined;
  const total = counted?.total;
  const isSender = useMayWrite();
  const badMore = moreOf(draft) === undefined;

  return (
    <Page
      title="Compose"
      actions={
        !isEmpty(draft) && (
          <Button variant="subtle" color="gray" onClick={clear}>
            Discard
          </Button>
        )
      }
    >
      <div className="columns wide">
        <Stack>
          <Panel title="Message">
            <Stack gap="sm">
              <TemplateFields draft={draft} change={change} problemOf={field} />
              <MessageFields
                value={draft}
                change={change}
                problemOf={field}
                placeholders={{
                  link: "https://… or /path/in/the/app",
                  more: '{ "data": { "order": "17" }, "priority": "normal" }',
                }}
                aboutMore="Any field of POST /api/v1/notifications: data, badge, sound, priority, ttl, collapse_id, localizations …"
                badMore={badMore ? 'Write a JSON object, such as { "priority": "normal" }' : undefined}
                besideTitle={<Note>{draft.title.length} / 256</Note>}
              >
                <Presentation draft={draft} change={change} problem={field} />
                <Reactions draft={draft} change={change} problem={field} />
              </MessageFields>
            </Stack>
          </Panel>
          <Panel title="Who gets it">
            <Targets value={draft.targets} onChange={(targets) => change({ targets })} error={field("targets")} />
          </Panel>
          <When draft={draft} change={change} problemOf={field} />
          <Group gap={10} justify="flex-end">
            {!isSender && (
              <Text span c="dimmed" className="grow">
                Your role cannot send.
              </Text>
            )}
            <Button
              variant="default"
              size="md"
              onClick={() => setDialog("test")}
              disabled={!hasContent || badMore || !isSender}
              leftSection={<Icon name="devices" />}
            >
              Send to one device first
            </Button>
            <Button
              size="md"
              onClick={() => setDialog("send")}
              disabled={!hasContent || badMore || !total || Boolean(error) || !isSender}
              leftSection={<Icon name={draft.sendAt ? "clock" : "send"} />}
            >
              {total === undefined
                ? "Review and send"
                : `Send to ${count(total)} ${total === 1 ? "device" : "devices"}…`}
            </Button>
          </Group>
        </Stack>
        <Audience
          dryRun={dryRun}
          hasTargets={hasTargets}
          app={app}
          typed={{
            ...{ title: draft.title, body: draft.body, image: draft.image, link: draft.link },
            buttons: draft.buttons.flatMap(({ title }) => title || []),
          }}
        />
      </div>
      {dialog === "send" && counted && (
        <SendDialog draft={draft} devices={counted} onClose={() => setDialog(undefined)} onSent={clear} />
      )}
      {dialog === "test" && <TestDialog draft={draft} onClose={() => setDialog(undefined)} />}
    </Page>
  );
};

/** Each project has a draft of its own. */
export default function ComposePage() {
  const { id } = useProject();
  return <Compose key={id} id={id} />;
}
