import type { DryRun } from "@herald/client";
import { useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useRef } from "react";
import { useProject } from "../../api/clients.ts";
import { FormDialog } from "../../parts/form.tsx";
import { count } from "../../parts/format.tsx";
import { Facts } from "../../parts/page.tsx";
import type { Draft } from "./draft.ts";
import { byPlatform, messageFacts } from "./message-facts.tsx";
import { notificationOf } from "./notification-of.ts";
import { rolloutWords } from "./planned-rollout.ts";
import { whenOf } from "./when.tsx";

type Props = {
  readonly draft: Draft;
  readonly dryRun: DryRun;
  readonly onClose: () => void;
  readonly onSent: () => void;
};

/** Asks for confirmation, with the number of devices, and sends. */
export const SendDialog = ({ draft, dryRun, onClose, onSent }: Props) => {
  const { devices } = dryRun;
  const { id, herald } = useProject();
  const queries = useQueryClient();
  const navigate = useNavigate();
  // One idempotency key per dialog: pressing twice, or again after an error, sends once.
  const key = useRef(crypto.randomUUID());
  const act = async () => {
    const sent = await herald.notifications.send(notificationOf(draft), { idempotencyKey: key.current });
    onSent();
    void queries.invalidateQueries({ queryKey: [id, "notifications"] });
    await navigate({ to: "/p/$project/notifications/$notification", params: { project: id, notification: sent.id } });
  };
  return (
    <FormDialog
      title={draft.sendAt ? "Schedule this notification?" : "Send this notification?"}
      verb={`Send to ${count(devices.total)} ${devices.total === 1 ? "device" : "devices"}`}
      act={act}
      onClose={onClose}
    >
      <Facts
        facts={{
          ...messageFacts(draft),
          Targets: draft.targets.join(", "),
          Devices: (
            <>
              <b>{count(devices.total)}</b> <span className="muted">{byPlatform(devices)}</span>
            </>
          ),
          When: whenOf(draft),
          Rollout: rolloutWords(dryRun),
        }}
      />
    </FormDialog>
  );
};
