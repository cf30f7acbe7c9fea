import { Button, Modal } from "@mantine/core";
import { texts } from "../texts/common.ts";
import { settingsTexts } from "../texts/settings.ts";
import { Copyable } from "./page.tsx";

type Props = { readonly title: string; readonly value: string | undefined; readonly onClose: () => void };

/** A secret that is shown once. */
export const SecretOnce = ({ title, value, onClose }: Props) => (
  <Modal opened onClose={onClose} title={title} closeOnClickOutside={false}>
    <div className="stack">
      <p className="text muted">{value === undefined ? settingsTexts.secretLost : settingsTexts.secretOnce}</p>
      {value !== undefined && (
        <pre className="code">
          <Copyable value={value} />
        </pre>
      )}
      <Button onClick={onClose}>{texts.common.close}</Button>
    </div>
  </Modal>
);
