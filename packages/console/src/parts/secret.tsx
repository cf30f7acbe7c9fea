import { Button, Modal, Stack, Text } from "@mantine/core";
import { CodeBlock, Copyable } from "./code.tsx";

type Props = { readonly title: string; readonly value: string | undefined; readonly onClose: () => void };

/** A secret that is shown once. */
export const SecretOnce = ({ title, value, onClose }: Props) => (
  <Modal opened onClose={onClose} title={title} closeOnClickOutside={false}>
    <Stack>
      <Text c="dimmed">
        {value === undefined
          ? "The response with the secret was lost. Delete this one and create another."
          : "Copy it now. Herald does not show it again."}
      </Text>
      {value !== undefined && (
        <CodeBlock>
          <Copyable value={value} />
        </CodeBlock>
      )}
      <Button onClick={onClose}>Close</Button>
    </Stack>
  </Modal>
);
