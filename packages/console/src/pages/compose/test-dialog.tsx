import type { DeliveryTrace } from "@herald/client";
import { Paper, Text } from "@mantine/core";
import { useState } from "react";
import { useProject } from "../../api/clients.ts";
import { Field } from "../../parts/field.tsx";
import { FormDialog } from "../../parts/form.tsx";
import { Sentence, Status } from "../../parts/format.tsx";
import type { FileRecipient } from "../recipients-file/read-file.ts";
import type { Draft } from "./draft.ts";
import { testOf } from "./notification-of.ts";

const finalWithinMs = 30_000;

type Result = { readonly status: string; readonly trace: DeliveryTrace | undefined };

type Props = {
  readonly draft: Draft;
  /** The first recipient of the draft's file. */
  readonly first: FileRecipient | undefined;
  readonly onClose: () => void;
};

/** Sends the draft to one device now, and shows the delivery trace. */
export const TestDialog = ({ draft, first, onClose }: Props) => {
  const { herald } = useProject();
  const [device, setDevice] = useState("");
  const [result, setResult] = useState<Result>();
  const send = async () => {
    setResult(undefined);
    const typed = device.trim();
    const target = /^(device|token|user|dev_)/.test(typed) ? typed : `token:${typed}`;
    const { id, completed } = await herald.notifications.send(testOf(draft, target, first));
    const now = await completed({ signal: AbortSignal.timeout(finalWithinMs) }).catch(() =>
      herald.notifications.get(id),
    );
    const [one] = (await herald.notifications.deliveries(id, { perPage: 5 }).page()).data;
    const trace = one && (await herald.notifications.trace(id, one.device_id));
    setResult({ status: one?.status ?? now.status, trace });
  };
  return (
    <FormDialog
      title="Send to one device first"
      verb="Send to this device"
      act={send}
      onClose={onClose}
      ready={device.trim() !== ""}
      leave="Close"
    >
      <Field
        label="Device"
        description="A device id, a push token, or user:<id>. The device gets this notification now, even if it is scheduled for later."
        value={device}
        onChange={setDevice}
        placeholder="dev_…"
        data-autofocus
      />
      {result && (
        <Paper withBorder p="sm" role="status">
          <Status value={result.status} />
          {result.trace ? (
            <ol className="story">
              {result.trace.explanation.map((sentence) => (
                <li key={sentence} className="break">
                  <Sentence text={sentence} />
                </li>
              ))}
            </ol>
          ) : (
            <Text c="var(--warn)">No active device matches. Look it up under Devices: it may be inactive.</Text>
          )}
        </Paper>
      )}
    </FormDialog>
  );
};
