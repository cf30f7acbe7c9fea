import type { Notification, Recipients as RecipientCounts, RecipientError } from "@herald/client";
import { Progress, Stack, Text } from "@mantine/core";
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { useProject } from "../../api/clients.ts";
import { useFirstRows } from "../../api/read.ts";
import { count } from "../../parts/format.tsx";
import { type Column, List } from "../../parts/list.tsx";
import { Facts, Note, Panel } from "../../parts/page.tsx";

const kindNames: Readonly<Record<string, string>> = { user: "users", device: "devices", token: "push tokens" };

const errorsAtATime = 25;
/** While lines arrive or are processed. */
const everyMs = 1_500;

const columns: readonly Column<RecipientError>[] = [
  { title: "Line", cell: ({ line }) => count(line) },
  { title: "Field", cell: ({ field }) => <span className="mono break">{field || "the line"}</span> },
  { title: "Problem", cell: ({ reason }) => <span className="break">{reason}</span> },
];

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
  const { query, onMore } = useFirstRows(
    [id, "recipient-errors", notification, polls],
    (options) => herald.notifications.recipientErrors(notification, options),
    errorsAtATime,
    polls ? everyMs : undefined,
  );
  return (
    <List
      query={query}
      onMore={onMore}
      columns={columns}
      keyOf={({ line, field }) => `${line}/${field}`}
      label="Lines that were not sent"
    />
  );
};

/** The recipients of a notification: how far their upload is, their counts, and what was wrong with which line. */
export const RecipientsPanel = ({
  notification: { id: ntf, recipients },
  ended,
}: {
  readonly notification: Pick<Notification, "id" | "recipients">;
  readonly ended: boolean;
}) => {
  const { id, herald } = useProject();
  const { data, isPlaceholderData } = useQuery({
    // With the end in the key, the counts are read once more after it.
    queryKey: [id, "recipients", ntf, ended],
    placeholderData: keepPreviousData,
    queryFn: ({ signal }) => herald.notifications.recipients(ntf, { signal }),
    enabled: recipients !== undefined,
    refetchInterval: ended ? false : everyMs,
  });
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
          {recipients.upload && !ended && !data.complete && (
            <Text size="sm">
              Upload it, or continue a broken upload:{" "}
              <span className="mono break">
                herald send --resume {ntf} --recipients {"<file>"}
              </span>
            </Text>
          )}
          <Facts
            facts={{
              [recipients.upload ? "From a file of" : "In the request"]: kindNames[recipients.kind] ?? recipients.kind,
              Recipients: count(data.recipients),
              Processed: !ended && count(processed),
              "Without a device": unmatched > 0 && <span className="warn">{count(unmatched)}</span>,
              "Refused lines": refused > 0 && <span className="bad">{count(refused)}</span>,
              "Doubles, left out": duplicates > 0 && count(duplicates),
              "Problems not listed": leftOut > 0 && count(leftOut),
            }}
          />
        </Stack>
      </Panel>
      {refused + unmatched > 0 && <Errors notification={ntf} polls={!ended} />}
    </>
  );
};
