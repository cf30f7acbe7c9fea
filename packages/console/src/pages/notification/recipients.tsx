import type { Notification, Recipients as RecipientCounts } from "@herald/client";
import { Progress, Stack } from "@mantine/core";
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { useProject } from "../../api/clients.ts";
import { count } from "../../parts/format.tsx";
import { List } from "../../parts/list.tsx";
import { Facts, Note, Panel } from "../../parts/page.tsx";
import { useMayWrite } from "../../session-context.tsx";
import { recipientErrorColumns } from "../recipients-file/report.tsx";
import { UploadPanel } from "./upload-panel.tsx";

const kindNames: Readonly<Record<string, string>> = { user: "users", device: "devices", token: "push tokens" };

const errorsAtATime = 25;
/** While lines arrive or are processed. */
const everyMs = 1_500;

/** How far an upload is, in one sentence. */
const progressOf = ({ complete, lines_stored: stored, processed, recipients }: RecipientCounts, ended: boolean) => {
  const of = `${count(processed)} of ${count(recipients)} recipients`;
  if (ended) return complete ? `All ${count(stored)} lines were read.` : `Ended before the whole file was there.`;
  if (complete) return `Herald has the whole file, and has processed ${of}.`;
  return stored === 0
    ? "Waits for its file."
    : `Herald has ${count(stored)} lines, and has processed ${of}. It waits for more.`;
};

const Errors = ({ notification, polls }: { readonly notification: string; readonly polls: boolean }) => {
  const { id, herald } = useProject();
  return (
    <List
      label="Lines that were not sent"
      queryKey={[id, "recipient-errors", notification, polls]}
      list={(options) => herald.notifications.recipientErrors(notification, options)}
      atATime={errorsAtATime}
      everyMs={polls ? everyMs : undefined}
      columns={recipientErrorColumns}
      keyOf={({ line, field }) => `${line}/${field}`}
    />
  );
};

type Props = {
  readonly notification: Pick<Notification, "id" | "recipients">;
  readonly ended: boolean;
};

/** How far the recipients of a notification are; undefined until it is read, or if it has none. */
const useRecipients = ({ notification: { id: ntf, recipients }, ended }: Props) => {
  const { id, herald } = useProject();
  return useQuery({
    // With the end in the key, the counts are read once more after it.
    queryKey: [id, "recipients", ntf, ended],
    placeholderData: keepPreviousData,
    queryFn: ({ signal }) => herald.notifications.recipients(ntf, { signal }),
    enabled: recipients !== undefined,
    refetchInterval: ended ? false : everyMs,
  });
};

/** Uploads the file that a notification waits for, while it does. */
export const RecipientsUpload = (props: Props) => {
  const { id, recipients } = props.notification;
  const mayWrite = useMayWrite();
  const { data } = useRecipients(props);
  if (!recipients?.upload || props.ended || !data || data.complete || !mayWrite) return null;
  return <UploadPanel key={id} notification={id} stored={data.lines_stored} />;
};

/** The recipients of a notification: how far their upload is, their counts, and what was wrong with which line. */
export const RecipientsPanel = (props: Props) => {
  const { notification, ended } = props;
  const { id: ntf, recipients } = notification;
  const { data, isPlaceholderData } = useRecipients(props);
  if (recipients === undefined || data === undefined) return null;
  const { refused, duplicates, unmatched, errors_left_out: leftOut, processed } = data;
  const progress = progressOf(data, ended && !isPlaceholderData);
  return (
    <>
      <Panel title="Recipients">
        <Stack>
          {recipients.upload && (
            <div role="status">
              {!ended && data.complete && (
                <Progress
                  value={data.recipients === 0 ? 0 : (processed / data.recipients) * 100}
                  animated
                  aria-label={progress}
                />
              )}
              <Note>{progress}</Note>
            </div>
          )}
          <Facts
            facts={{
              [recipients.upload ? "From a file of" : "In the request"]: kindNames[recipients.kind] ?? recipients.kind,
              Recipients: count(data.recipients),
              Processed: !ended && count(processed),
              "Without a device": unmatched > 0 && <span className="warn">{count(unmatched)}</span>,
              "Refused lines": refused > 0 && <span className="bad">{count(refused)}</span>,
              "Duplicates, left out": duplicates > 0 && count(duplicates),
              "Problems not listed": leftOut > 0 && count(leftOut),
            }}
          />
        </Stack>
      </Panel>
      {refused + unmatched > 0 && <Errors notification={ntf} polls={!ended} />}
    </>
  );
};
