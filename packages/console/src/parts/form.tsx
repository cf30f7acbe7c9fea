import { Button, Group, Modal } from "@mantine/core";
import { type UseMutationResult, useMutation } from "@tanstack/react-query";
import type { FormEvent, ReactNode } from "react";
import { texts } from "../texts/common.ts";
import { Problem } from "./page.tsx";

type Props = {
  readonly title: string;
  readonly verb: string;
  readonly act: () => Promise<unknown>;
  readonly onClose: () => void;
  readonly ready?: boolean;
  readonly children: ReactNode;
  readonly size?: string;
};

/** A form in a dialog. What the API refuses is said above its buttons. */
export const FormDialog = ({ title, verb, act, onClose, ready = true, children, size = "md" }: Props) => {
  const acting: UseMutationResult<unknown, unknown, void> = useMutation({ mutationFn: act });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    acting.mutate();
  };
  return (
    <Modal opened onClose={onClose} title={title} size={size} closeOnClickOutside={false}>
      <form className="stack fields" onSubmit={submit}>
        {children}
        {acting.error !== null && <Problem error={acting.error} />}
        <Group justify="flex-end" gap="xs">
          <Button variant="default" onClick={onClose}>
            {texts.common.cancel}
          </Button>
          <Button type="submit" loading={acting.isPending} disabled={!ready}>
            {verb}
          </Button>
        </Group>
      </form>
    </Modal>
  );
};
