import type { Recipients } from "@herald/client";
import { Text } from "@mantine/core";
import { useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useRef, useState } from "react";
import { useProject } from "../../api/clients.ts";
import { FormDialog } from "../../parts/form.tsx";
import { Facts } from "../../parts/page.tsx";
import { type FileRecipient, uploadTypeOf } from "../recipients-file/read-file.ts";
import { FileReport, sendFileLabel } from "../recipients-file/report.tsx";
import { startUpload } from "../recipients-file/upload.ts";
import type { Draft } from "./draft.ts";
import { messageFacts } from "./message-facts.tsx";
import { notificationOf } from "./notification-of.ts";

type Props = {
  readonly draft: Draft;
  readonly file: File;
  readonly first: FileRecipient;
  readonly onClose: () => void;
  readonly onSent: () => void;
};

/** Makes the notification, which waits for its file, lets Herald read the file without sending, and sends it. */
export const FileDialog = ({ draft, file, first, onClose, onSent }: Props) => {
  const { id, herald } = useProject();
  const queries = useQueryClient();
  const navigate = useNavigate();
  // One idempotency key per dialog: to check again makes no second notification.
  const key = useRef(crypto.randomUUID());
  const made = useRef<string>(undefined);
  const [ending] = useState(() => new AbortController());
  const [report, setReport] = useState<Recipients>();
  const [checking, setChecking] = useState(false);

  const drop = () => {
    if (made.current !== undefined) void herald.notifications.cancel(made.current).catch(() => undefined);
  };
  const check = async () => {
    setChecking(true);
    try {
      made.current ??= (
        await herald.notifications.send(notificationOf(draft, first), { idempotencyKey: key.current })
      ).id;
      if (ending.signal.aborted) return drop();
      const contentType = uploadTypeOf(file);
      setReport(
        await herald.notifications.dryRunRecipients(made.current, file, { signal: ending.signal, contentType }),
      );
    } finally {
      setChecking(false);
    }
  };
  const send = async ({ lines_stored: lines }: Recipients) => {
    const notification = made.current ?? "";
    startUpload(queries, herald, notification, { file, lines });
    onSent();
    void queries.invalidateQueries({ queryKey: [id, "notifications"] });
    await navigate({ to: "/p/$project/notifications/$notification", params: { project: id, notification } });
  };
  return (
    <FormDialog
      title={report ? "Send to the recipients of this file?" : "Check this file?"}
      verb={report ? sendFileLabel(report) : "Check the file"}
      act={() => (report ? send(report) : check())}
      ready={report === undefined || report.recipients > 0}
      size="lg"
      onClose={() => {
        ending.abort();
        drop();
        onClose();
      }}
    >
      <Facts
        facts={{
          ...messageFacts(draft),
          File: <span className="break">{file.name}</span>,
        }}
      />
      {report ? (
        <FileReport report={report} />
      ) : (
        <Text c="dimmed" role="status">
          {checking
            ? "Herald reads the file. Nothing is sent."
            : "Herald makes the notification, reads the whole file and shows what it found. It sends nothing before you confirm; if you cancel, the notification is cancelled."}
        </Text>
      )}
    </FormDialog>
  );
};
