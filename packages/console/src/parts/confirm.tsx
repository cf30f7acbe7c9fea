import { Button, Group, Modal, Stack, Text } from "@mantine/core";
import { useMutation } from "@tanstack/react-query";
import { type ReactNode, useState } from "react";
import { Problem } from "./page.tsx";

type Props = {
  /** Default: `Delete`. */
  readonly label?: string;
  readonly title: string;
  /** What follows from the act. */
  readonly about?: string;
  readonly children?: ReactNode;
  /** The label of the dialog's button: a verb with its object. */
  readonly verb: string;
  readonly act: () => Promise<unknown>;
  readonly onDone?: () => void;
  readonly danger?: boolean;
  readonly size?: string;
};

/** A button that asks for confirmation before it acts. */
export const Confirm = ({
  label = "Delete",
  title,
  about,
  children,
  verb,
  act,
  onDone,
  danger = true,
  size = "compact-sm",
}: Props) => {
  const [opened, setOpened] = useState(false);
  const acting = useMutation({
    mutationFn: act,
    onSuccess: () => {
      setOpened(false);
      onDone?.();
    },
  });
  const open = () => {
    acting.reset();
    setOpened(true);
  };
  return (
    <>
      <Button variant="default" size={size} onClick={open} c={danger ? "var(--bad)" : undefined}>
        {label}
      </Button>
      <Modal opened={opened} onClose={() => setOpened(false)} title={title}>
        <Stack>
          {about && <Text>{about}</Text>}
          {children}
          {acting.error && <Problem error={acting.error} />}
          <Group justify="flex-end" gap="xs">
            <Button variant="default" onClick={() => setOpened(false)}>
              Cancel
            </Button>
            <Button color={danger ? "red" : undefined} loading={acting.isPending} onClick={() => acting.mutate()}>
              {verb}
            </Button>
          </Group>
        </Stack>
      </Modal>
    </>
  );
};
