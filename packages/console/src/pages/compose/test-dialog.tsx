import { Paper, Text } from "@mantine/core";
import { useProject } from "../../api/clients.ts";
import type { FieldSpec } from "../../parts/field-values.ts";
import { FormDialog } from "../../parts/form.tsx";
import { Status } from "../../parts/format.tsx";
import { Story } from "../../parts/story.tsx";
import type { FileRecipient } from "../recipients-file/read-file.ts";
import type { Draft } from "./draft.ts";
import { testOf } from "./notification-of.ts";

const finalWithinMs = 30_000;

const deviceField: FieldSpec = {
  label: "Device",
  hint: "A device id, a push token, or user:<id>. The device gets this notification now, even if it is scheduled for later.",
  placeholder: "dev_…",
  required: true,
};

type Props = {
  readonly draft: Draft;
  /** The first recipient of the draft's file. */
  readonly first: FileRecipient | undefined;
  readonly onClose: () => void;
};

/** Sends the draft to one device now, and shows the delivery trace. */
export const TestDialog = ({ draft, first, onClose }: Props) => {
  const { herald } = useProject();
  const send = async ({ device }: { readonly device: string }) => {
    const target = /^(device|token|user|dev_)/.test(device) ? device : `token:${device}`;
    const { id, completed } = await herald.notifications.send(testOf(draft, target, first));
    const now = await completed({ signal: AbortSignal.timeout(finalWithinMs) }).catch(() =>
      herald.notifications.get(id),
    );
    const [one] = (await herald.notifications.deliveries(id, { perPage: 5 }).page()).data;
    const trace = one && (await herald.notifications.trace(id, one.device_id));
    return { status: one?.status ?? now.status, trace };
  };
  return (
    <FormDialog
      title="Send to one device first"
      verb="Send to this device"
      fields={{ device: deviceField }}
      act={send}
      onClose={onClose}
      leave="Close"
    >
      {(result) =>
        result && (
          <Paper p="sm" role="status">
            <Status value={result.status} />
            {result.trace ? (
              <Story sentences={result.trace.explanation} />
            ) : (
              <Text c="var(--warn)">No active device matches. Look it up under Devices: it may be inactive.</Text>
            )}
          </Paper>
        )
      }
    </FormDialog>
  );
};
