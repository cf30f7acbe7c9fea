import { Button, Modal } from "@mantine/core";
import { texts } from "../texts.ts";
import { Copyable } from "./page.tsx";

type Props = { readonly title: string; readonly value: string | undefined; readonly onClose: () => void };

/** A secret that is shown once. */
export const SecretOnce = ({ title, value, onClose }: Props) => (
  <Modal opened onClose={onClose} title={title} closeOnClickOutside={false}>
    <div className="stack">
      <p className="text muted">{value === undefined ? texts.settings.secretLost : texts.settings.secretOnce}</p>
      {value !== undefined && (
        <pre className="code">
          <Copyable value={value} />
        </pre>
      )}
      <Button onClick={onClose}>{texts.common.close}</Button>
    </div>
  </Modal>
);
