import type { DryRun } from "@herald/client";
import { Button, Group, Modal } from "@mantine/core";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useRef } from "react";
import { useProject } from "../../api/clients.ts";
import { count, exactTime, platformNames } from "../../parts/format.tsx";
import { Facts, Problem } from "../../parts/page.tsx";
import { texts } from "../../texts/common.ts";
import { composeTexts } from "../../texts/compose.ts";
import { type Draft, notificationOf } from "./draft.ts";

type Props = {
  readonly draft: Draft;
  readonly devices: DryRun["devices"];
  readonly onClose: () => void;
  readonly onSent: () => void;
};

/** Asks before it sends, with the number of devices. */
export const SendDialog = ({ draft, devices, onClose, onSent }: Props) => {
  const { id, herald } = useProject();
  const queries = useQueryClient();
  const navigate = useNavigate();
  // Of this dialog: pressing twice, or again after an error, sends once.
  const key = useRef(crypto.randomUUID());
  const sending = useMutation({
    mutationFn: () => herald.notifications.send(notificationOf(draft), { idempotencyKey: key.current }),
    onSuccess: (sent) => {
      onSent();
      void queries.invalidateQueries({ queryKey: [id, "notifications"] });
      void navigate({ to: "/p/$project/notifications/$notification", params: { project: id, notification: sent.id } });
    },
  });
  const { send } = composeTexts;
  const platforms = (["ios", "android", "web"] as const).filter((name) => devices[name] > 0);
  return (
    <Modal opened onClose={onClose} title={draft.sendAt ? send.scheduleTitle : send.title}>
      <div className="stack">
        <Facts
          facts={[
            [
              send.content,
              <b key="t" dir="auto" className="break">
                {draft.title || draft.body || send.noText}
              </b>,
            ],
            [send.to, draft.targets.join(", ")],
            [
              send.devices,
              <span key="d">
                <b>{count(devices.total)}</b>{" "}
                <span className="muted">
                  {platforms.map((name) => `${platformNames[name]} ${count(devices[name])}`).join(" · ")}
                </span>
              </span>,
            ],
            [send.when, draft.sendAt ? exactTime(new Date(draft.sendAt).toISOString()) : send.now],
          ]}
        />
        {sending.error && <Problem error={sending.error} />}
        <Group justify="flex-end" gap="xs">
          <Button variant="default" onClick={onClose}>
            {texts.common.cancel}
          </Button>
          <Button loading={sending.isPending} onClick={() => sending.mutate()} data-autofocus>
            {send.confirm(count(devices.total), devices.total)}
          </Button>
        </Group>
      </div>
    </Modal>
  );
};
