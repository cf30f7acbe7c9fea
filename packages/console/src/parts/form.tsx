import { Button, Group, Modal } from "@mantine/core";
import { type UseMutationResult, useMutation } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { Form } from "./field.tsx";
import { Problem } from "./page.tsx";

type Props = {
  readonly title: string;
  readonly verb: string;
  readonly act: () => Promise<unknown>;
  readonly onClose: () => void;
  readonly ready?: boolean;
  /** The label of the button that closes the dialog. Default: `Cancel`; a dialog that stays open after its act uses `Close`. */
  readonly leave?: string;
  readonly children: ReactNode;
  readonly size?: string;
};

/** A form in a dialog. Errors of the API are shown above its buttons. */
export const FormDialog = ({
  title,
  verb,
  act,
  onClose,
  ready = true,
  leave = "Cancel",
  children,
  size = "md",
}: Props) => {
  const acting: UseMutationResult<unknown, unknown, void> = useMutation({ mutationFn: act });
  return (
    <Modal opened onClose={onClose} title={title} size={size} closeOnClickOutside={false}>
      <Form onSubmit={acting.mutate}>
        {children}
        {acting.error !== null && <Problem error={acting.error} />}
        <Group justify="flex-end" gap="xs">
          <Button variant="default" onClick={onClose}>
            {leave}
          </Button>
          <Button type="submit" loading={acting.isPending} disabled={!ready}>
            {verb}
          </Button>
        </Group>
      </Form>
    </Modal>
  );
};
