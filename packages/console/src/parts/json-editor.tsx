import { Button, Group, JsonInput, Modal } from "@mantine/core";
import { useMutation } from "@tanstack/react-query";
import { useState } from "react";
import { texts } from "../texts/common.ts";
import { composeTexts } from "../texts/compose.ts";
import { Problem } from "./page.tsx";

type Json = Record<string, unknown>;

/** What a merge patch must say so that `before` becomes `after`: fields that are gone are null. */
export const patchOf = (before: Json, after: Json): Json => ({
  ...Object.fromEntries(
    Object.keys(before)
      .filter((name) => !(name in after))
      .map((name) => [name, null]),
  ),
  ...after,
});

const objectOf = (text: string): Json | undefined => {
  try {
    const parsed: unknown = JSON.parse(text);
    return typeof parsed === "object" && parsed !== null && !Array.isArray(parsed) ? (parsed as Json) : undefined;
  } catch {
    return undefined;
  }
};

type Props = {
  readonly title: string;
  readonly value: Json;
  readonly save: (value: Json) => Promise<unknown>;
  readonly onDone: () => void;
};

/** A JSON object that people edit as text. */
export const JsonEditor = ({ title, value, save, onDone }: Props) => {
  const [opened, setOpened] = useState(false);
  const [text, setText] = useState("");
  const parsed = objectOf(text);
  const saving = useMutation({
    mutationFn: () => save(parsed ?? {}),
    onSuccess: () => {
      setOpened(false);
      onDone();
    },
  });
  const open = () => {
    setText(JSON.stringify(value, null, 2));
    saving.reset();
    setOpened(true);
  };
  return (
    <>
      <Button size="compact-sm" variant="default" onClick={open}>
        {texts.common.edit}
      </Button>
      <Modal opened={opened} onClose={() => setOpened(false)} title={title} size="lg">
        <div className="stack">
          <JsonInput
            aria-label={title}
            value={text}
            onChange={setText}
            autosize
            minRows={8}
            maxRows={20}
            error={parsed === undefined ? composeTexts.notJson : undefined}
          />
          {saving.error && <Problem error={saving.error} />}
          <Group justify="flex-end" gap="xs">
            <Button variant="default" onClick={() => setOpened(false)}>
              {texts.common.cancel}
            </Button>
            <Button disabled={parsed === undefined} loading={saving.isPending} onClick={() => saving.mutate()}>
              {texts.common.save}
            </Button>
          </Group>
        </div>
      </Modal>
    </>
  );
};
