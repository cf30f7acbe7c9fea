import { FileInput } from "@mantine/core";

type Props = {
  readonly file: File | undefined;
  readonly onChange: (file: File | undefined) => void;
  readonly error?: string | undefined;
};

/** Chooses a file of recipients. */
export const RecipientsFileInput = ({ file, onChange, error }: Props) => (
  <FileInput
    label="File of recipients"
    description="CSV with the column target and one for each variable, or NDJSON with target and variables in each line. Also as .gz; up to 2,000,000 lines."
    placeholder="Choose a file"
    accept=".csv,.ndjson,.jsonl,.json,.gz"
    value={file ?? null}
    onChange={(chosen) => onChange(chosen ?? undefined)}
    error={error}
    clearable
    clearButtonProps={{ "aria-label": "Remove the file" }}
  />
);
