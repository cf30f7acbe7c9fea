import { HeraldError, type Recipients } from "@herald/client";
import { Alert, Button, Group, Progress, Stack, Text } from "@mantine/core";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { useProject } from "../../api/clients.ts";
import { count } from "../../parts/format.tsx";
import { Icon } from "../../parts/icon.tsx";
import { Panel } from "../../parts/page.tsx";
import { Problem } from "../../parts/problem.tsx";
import { RecipientsFileInput } from "../recipients-file/file-input.tsx";
import { uploadTypeOf } from "../recipients-file/read-file.ts";
import { FileReport, sendFileLabel } from "../recipients-file/report.tsx";
import { startUpload, useFileUpload } from "../recipients-file/upload.ts";

/** Why the upload of this page ended before the whole file was there. */
const Broken = ({ error, stopped, stored }: { error: unknown; stopped: boolean; stored: number }) => {
  const isLost = error instanceof HeraldError && error.status === undefined;
  if (!stopped && !isLost) return <Problem error={error} />;
  return (
    <Alert icon={<Icon name="warning" />} title={stopped ? "You stopped the upload" : "The connection broke"}>
      {stored === 0
        ? "Herald has no line of the file yet. Send it again."
        : `Herald has ${count(stored)} lines. Continue sends the file again, and Herald skips the lines that it has.`}
      {!stopped && " If the file has changed since you chose it, choose it again."}
    </Alert>
  );
};

type Props = { readonly notification: string; readonly stored: number };

/** Uploads the file that a notification waits for: a check that sends nothing, the upload with its progress, and its continuation. */
export const UploadPanel = ({ notification, stored }: Props) => {
  const { id, herald } = useProject();
  const queries = useQueryClient();
  const latest = useFileUpload(notification);
  const [file, setFile] = useState<File | undefined>(latest?.upload.file);
  const [report, setReport] = useState<Recipients>();
  const [ending, setEnding] = useState<AbortController>();
  const checking = useMutation({
    mutationFn: async (chosen: File) => {
      const controller = new AbortController();
      setEnding(controller);
      const options = { signal: controller.signal, contentType: uploadTypeOf(chosen) };
      return herald.notifications.dryRunRecipients(notification, chosen, options);
    },
    onSuccess: setReport,
  });
  const choose = (chosen: File | undefined) => {
    ending?.abort();
    checking.reset();
    setReport(undefined);
    setFile(chosen);
  };
  const send = () => {
    if (file) startUpload(queries, herald, notification, { file, lines: report?.lines_stored ?? latest?.upload.lines });
    void queries.invalidateQueries({ queryKey: [id, "recipients", notification] });
  };

  if (latest?.status === "pending") {
    const { lines, file: sending, ending: upload } = latest.upload;
    const progress = lines ? `${count(stored)} of ${count(lines)} lines` : `${count(stored)} lines`;
    return (
      <Panel title="Upload">
        <Stack gap="sm">
          {lines !== undefined && (
            <Progress value={(stored / Math.max(lines, 1)) * 100} animated aria-label={`${progress} are uploaded`} />
          )}
          <Text className="break">
            {`Uploading ${sending.name}: Herald has ${progress}. Keep this tab open; Herald reads the file as fast as it sends.`}
          </Text>
          <div>
            <Button variant="default" onClick={() => upload.abort()}>
              Stop the upload
            </Button>
          </div>
        </Stack>
      </Panel>
    );
  }
  const isBegun = stored > 0;
  return (
    <Panel title={isBegun ? "Continue the upload" : "Upload its file"}>
      <Stack gap="sm">
        {latest?.status === "error" && (
          <Broken error={latest.error} stopped={latest.upload.ending.signal.aborted} stored={stored} />
        )}
        <RecipientsFileInput file={file} onChange={choose} />
        {isBegun && (
          <Text c="dimmed">{`Choose the same file. Herald skips the ${count(stored)} lines that it has.`}</Text>
        )}
        {checking.isPending && (
          <Text c="dimmed" role="status">
            Herald reads the file. Nothing is sent.
          </Text>
        )}
        {checking.error && !ending?.signal.aborted && <Problem error={checking.error} />}
        {report && <FileReport report={report} />}
        <Group gap="xs">
          {!isBegun && !report && (
            <Button
              variant="default"
              disabled={file === undefined}
              loading={checking.isPending}
              onClick={() => file && checking.mutate(file)}
            >
              Check the file
            </Button>
          )}
          <Button disabled={file === undefined || report?.recipients === 0} onClick={send}>
            {isBegun ? "Continue" : report ? sendFileLabel(report) : "Upload and send"}
          </Button>
        </Group>
      </Stack>
    </Panel>
  );
};
