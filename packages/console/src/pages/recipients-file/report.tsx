import type { LineError, Recipients } from "@herald/client";
import { Stack } from "@mantine/core";
import { count, Sentence } from "../../parts/format.tsx";
import { type Column, Rows } from "../../parts/list.tsx";
import { Facts, Note } from "../../parts/page.tsx";

export const recipientErrorColumns: readonly Column<LineError>[] = [
  { title: "Line", cell: ({ line }) => count(line) },
  {
    title: "Field",
    cell: ({ field }) =>
      field === "" ? "the line" : <span className="mono">{field.replace(/^variables\./, "")}</span>,
  },
  {
    title: "Problem",
    long: true,
    cell: ({ reason }) => (
      <span className="break">
        <Sentence text={reason} />
      </span>
    ),
  },
];

/** What Herald found in a file of recipients when it read the whole of it, without sending. */
export const FileReport = ({ report }: { readonly report: Recipients }) => {
  const { lines_stored: lines, recipients, refused, duplicates, errors = [] } = report;
  return (
    <Stack gap="sm" role="status">
      <Facts
        facts={{
          Lines: count(lines),
          Recipients: <b>{count(recipients)}</b>,
          "Refused lines": refused > 0 && <span className="bad">{count(refused)}</span>,
          "Duplicates, left out": duplicates > 0 && count(duplicates),
        }}
      />
      {errors.length > 0 && (
        <>
          <Note>The first problems by line. A refused line does not stop the others.</Note>
          <Rows
            rows={errors}
            columns={recipientErrorColumns}
            keyOf={({ line, field, reason }) => `${line}/${field}/${reason}`}
            label="The first problems"
          />
        </>
      )}
    </Stack>
  );
};

/** The label of the button that sends a file: with the number of its recipients, once it is checked. */
export const sendFileLabel = ({ recipients }: Pick<Recipients, "recipients">): string =>
  `Send to ${count(recipients)} ${recipients === 1 ? "recipient" : "recipients"}`;
