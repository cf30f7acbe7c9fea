import { JsonInput } from "@mantine/core";
import { useState } from "react";
import { FormDialog } from "./form.tsx";
import { type Json, objectOf } from "./json.ts";
import { SmallButton } from "./small-button.tsx";

/** The JSON merge patch that turns `before` into `after`: removed fields are null. */
export const patchOf = (before: Json, after: Json): Json => ({
  ...Object.fromEntries(
    Object.keys(before)
      .filter((name) => !(name in after))
      .map((name) => [name, null]),
  ),
  ...after,
});

type Props = {
  readonly title: string;
  readonly value: Json;
  readonly save: (value: Json) => Promise<unknown>;
  readonly onDone: () => void;
};

/** A JSON object that people edit as text. */
export const JsonEditor = ({ title, value, save, onDone }: Props) => {
  const [text, setText] = useState<string>();
  const parsed = objectOf(text ?? "");
  const close = () => setText(undefined);
  const act = async () => {
    await save(parsed ?? {});
    close();
    onDone();
  };
  return (
    <>
      <SmallButton onClick={() => setText(JSON.stringify(value, null, 2))}>Edit</SmallButton>
      {text !== undefined && (
        <FormDialog title={title} verb="Save" act={act} onClose={close} ready={parsed !== undefined} size="lg">
          <JsonInput
            aria-label={title}
            value={text}
            onChange={setText}
            autosize
            minRows={8}
            maxRows={20}
            error={parsed === undefined ? 'Write a JSON object, such as { "priority": "normal" }' : undefined}
          />
        </FormDialog>
      )}
    </>
  );
};
