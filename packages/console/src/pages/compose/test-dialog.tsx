import { Button, Group, Modal, TextInput } from "@mantine/core";
import { useMutation } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { useProject } from "../../api/clients.ts";
import { Status } from "../../parts/format.tsx";
import { Problem } from "../../parts/page.tsx";
import { texts } from "../../texts/common.ts";
import { composeTexts } from "../../texts/compose.ts";
import { type Draft, notificationOf } from "./draft.ts";

const final = ["completed", "expired", "cancelled"];
const finalWithinMs = 30_000;
const pollMs = 500;

/** One device gets it first, now, and its delivery trace says how that went. */
export const TestDialog = ({ draft, onClose }: { readonly draft: Draft; readonly onClose: () => void }) => {
  const { herald } = useProject();
  const [device, setDevice] = useState("");
  const testing = useMutation({
    mutationFn: async (target: string) => {
      const { send_at: _, ...notification } = notificationOf(draft);
      const sent = await herald.notifications.send({ ...notification, targets: [target] });
      const deadline = Date.now() + finalWithinMs;
      for (;;) {
        const now = await herald.notifications.get(sent.id);
        const { data } = await herald.notifications.deliveries(sent.id, { perPage: 5 }).page();
        const one = data[0];
        if (final.includes(now.status) || Date.now() > deadline)
          return {
            status: one?.status ?? now.status,
            trace: one && (await herald.notifications.trace(sent.id, one.device_id)),
          };
        await new Promise((resolve) => setTimeout(resolve, pollMs));
      }
    },
  });
  const { test } = composeTexts;
  const submit = (event: FormEvent) => {
    event.preventDefault();
    const typed = device.trim();
    testing.mutate(/^(device|token|user|dev_)/.test(typed) ? typed : `token:${typed}`);
  };
  return (
    <Modal opened onClose={onClose} title={test.title}>
      <form onSubmit={submit} className="stack">
        <TextInput
          label={test.device}
          description={test.hint}
          inputWrapperOrder={["label", "input", "description"]}
          value={device}
          onChange={(event) => setDevice(event.currentTarget.value)}
          placeholder="dev_…"
          data-autofocus
        />
        {testing.error && <Problem error={testing.error} />}
        {testing.data && (
          <div className="test-result" role="status">
            <Status value={testing.data.status} />
            {testing.data.trace ? (
              <ol className="sentences">
                {testing.data.trace.explanation.map((sentence) => (
                  <li key={sentence} className="break">
                    {sentence}
                  </li>
                ))}
              </ol>
            ) : (
              <p className="warn text">{test.nobody}</p>
            )}
          </div>
        )}
        <Group justify="flex-end" gap="xs">
          <Button variant="default" onClick={onClose}>
            {texts.common.close}
          </Button>
          <Button type="submit" loading={testing.isPending} disabled={device.trim() === ""}>
            {test.submit}
          </Button>
        </Group>
      </form>
    </Modal>
  );
};
