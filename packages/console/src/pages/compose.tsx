import { Button, JsonInput, SegmentedControl, Textarea, TextInput } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { useProject } from "../api/clients.ts";
import { problemsOf } from "../api/problems.ts";
import { useProjectName } from "../api/projects.ts";
import { count } from "../parts/format.tsx";
import { Icon } from "../parts/icon.tsx";
import { Page, Panel } from "../parts/page.tsx";
import { useSession } from "../session-context.tsx";
import { texts } from "../texts/common.ts";
import { composeTexts } from "../texts/compose.ts";
import { Audience } from "./compose/audience.tsx";
import { isEmpty, moreOf, notificationOf, useDraft } from "./compose/draft.ts";
import { SendDialog } from "./compose/send-dialog.tsx";
import { Targets } from "./compose/targets.tsx";
import { TestDialog } from "./compose/test-dialog.tsx";

/** Long enough that one who types is not counted at every key: dry runs have a quota. */
const typingMs = 600;

/** As `datetime-local` wants it, in this browser's time zone. */
const localTime = (at: Date): string =>
  new Date(at.getTime() - at.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);

const Compose = ({ id }: { readonly id: string }) => {
  const { herald } = useProject();
  const { session } = useSession();
  const { draft, change, clear } = useDraft(id);
  const [dialog, setDialog] = useState<"send" | "test" | undefined>();
  const [settled] = useDebouncedValue(draft, typingMs);
  const hasTargets = draft.targets.length > 0;
  const hasContent = draft.title !== "" || draft.body !== "" || moreOf(draft)?.silent === true;
  const app = useProjectName();
  const dryRun = useQuery({
    queryKey: [id, "dry-run", settled],
    queryFn: ({ signal }) => {
      const { send_at: _, ...notification } = notificationOf(settled);
      // Counting needs no words yet.
      const worded = settled.title || settled.body ? notification : { ...notification, body: "…" };
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
  const isSender = session.role !== "viewer";
  const badMore = moreOf(draft) === undefined;
  const c = composeTexts;

  return (
    <Page
      title={texts.nav.compose}
      name={texts.nav.compose}
      actions={
        !isEmpty(draft) && (
          <Button variant="subtle" color="gray" onClick={clear}>
            {c.clear}
          </Button>
        )
      }
    >
      <div className="columns wide">
        <div className="stack">
          <Panel title={c.message}>
            <div className="stack fields">
              <TextInput
                label={c.title}
                value={draft.title}
                onChange={(event) => change({ title: event.currentTarget.value })}
                error={field("title")}
                maxLength={300}
                rightSectionWidth={64}
                rightSection={<span className="muted small">{draft.title.length} / 256</span>}
              />
              <Textarea
                label={c.body}
                value={draft.body}
                onChange={(event) => change({ body: event.currentTarget.value })}
                error={field("body")}
                autosize
                minRows={3}
                maxRows={10}
              />
              <div className="columns two tight">
                <TextInput
                  label={c.link}
                  placeholder={c.linkPlaceholder}
                  value={draft.link}
                  onChange={(event) => change({ link: event.currentTarget.value })}
                  error={field("link_to")}
                />
                <TextInput
                  label={c.image}
                  placeholder="https://…"
                  value={draft.image}
                  onChange={(event) => change({ image: event.currentTarget.value })}
                  error={field("image")}
                />
              </div>
              <details className="payload" open={draft.more !== ""}>
                <summary>{c.more}</summary>
                <JsonInput
                  aria-label={c.more}
                  description={c.moreHint}
                  placeholder='{ "data": { "order": "17" }, "priority": "normal" }'
                  value={draft.more}
                  onChange={(more) => change({ more })}
                  error={badMore ? c.notJson : undefined}
                  autosize
                  minRows={3}
                  formatOnBlur
                />
              </details>
            </div>
          </Panel>
          <Panel title={c.who}>
            <Targets value={draft.targets} onChange={(targets) => change({ targets })} error={field("targets")} />
          </Panel>
          <Panel
            title={c.when}
            actions={
              <SegmentedControl
                size="xs"
                aria-label={c.when}
                value={draft.sendAt === "" ? "now" : "later"}
                onChange={(value) =>
                  change({ sendAt: value === "now" ? "" : localTime(new Date(Date.now() + 3_600_000)) })
                }
                data={[
                  { value: "now", label: c.whenNow },
                  { value: "later", label: c.whenLater },
                ]}
              />
            }
          >
            {draft.sendAt === "" ? (
              <p className="muted text">{c.nowHint}</p>
            ) : (
              <TextInput
                type="datetime-local"
                label={c.sendAt}
                description={c.sendAtHint(Intl.DateTimeFormat().resolvedOptions().timeZone)}
                inputWrapperOrder={["label", "input", "description"]}
                value={draft.sendAt}
                min={localTime(new Date())}
                onChange={(event) => event.currentTarget.value && change({ sendAt: event.currentTarget.value })}
                maw={280}
              />
            )}
          </Panel>
          <div className="send-bar">
            {!isSender && <span className="muted text grow">{c.viewer}</span>}
            <Button
              variant="default"
              size="md"
              onClick={() => setDialog("test")}
              disabled={!hasContent || badMore || !isSender}
              leftSection={<Icon name="devices" />}
            >
              {c.testFirst}
            </Button>
            <Button
              size="md"
              onClick={() => setDialog("send")}
              disabled={!hasContent || badMore || !total || Boolean(error) || !isSender}
              leftSection={<Icon name={draft.sendAt ? "clock" : "send"} />}
            >
              {total === undefined ? c.review : c.reviewCount(count(total), total)}
            </Button>
          </div>
        </div>
        <Audience
          dryRun={dryRun}
          hasTargets={hasTargets}
          app={app}
          typed={{ title: draft.title, body: draft.body, image: draft.image, link: draft.link }}
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
