import { Button, Modal } from "@mantine/core";
import { Copyable } from "./page.tsx";

type Props = { readonly title: string; readonly value: string | undefined; readonly onClose: () => void };

/** A secret that is shown once. */
export const SecretOnce = ({ title, value, onClose }: Props) => (
  <Modal opened onClose={onClose} title={title} closeOnClickOutside={false}>
    <div className="stack">
      <p className="text muted">
        {value === undefined
          ? "The first answer was lost on its way. Delete this one and make another."
          : "Copy it now: Herald does not show it again."}
      </p>
      {value !== undefined && (
        <pre className="code">
          <Copyable value={value} />
        </pre>
      )}
      <Button onClick={onClose}>Close</Button>
    </div>
  </Modal>
);
