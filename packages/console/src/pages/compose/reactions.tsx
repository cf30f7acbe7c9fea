import { Button, Checkbox, Group, SimpleGrid, Stack, Text } from "@mantine/core";
import { Field } from "../../parts/field.tsx";
import { Note } from "../../parts/page.tsx";
import { SmallButton } from "../../parts/small-button.tsx";
import type { Draft, DraftButton } from "./draft.ts";

type Props = {
  readonly draft: Draft;
  readonly change: (changes: Partial<Draft>) => void;
  /** The problem of a field of the API. */
  readonly problem: (field: string) => string | undefined;
};

/** As many as the API accepts. */
const maxButtons = 3;

const newButton = (buttons: readonly DraftButton[]): DraftButton => {
  const free = Array.from({ length: maxButtons }, (_, at) => `button-${at + 1}`);
  const id = free.find((one) => buttons.every((button) => button.id !== one)) ?? "";
  return { id, title: "", link: "", opens: true };
};

/** What the app's kit does beyond showing the message: it reports the arrival, and shows buttons. */
export const Reactions = ({ draft, change, problem }: Props) => {
  const { receipts, buttons } = draft;
  const changeButton = (place: number, changes: Partial<DraftButton>) =>
    change({ buttons: buttons.map((button, at) => (at === place ? { ...button, ...changes } : button)) });
  const isDrawn = buttons.length > 0 || Number(receipts.replace(",", ".")) > 0;
  return (
    <details className="payload" open={receipts !== "" || buttons.length > 0}>
      <summary>Receipts and buttons</summary>
      <Stack gap="sm">
        <Field
          label="Receipts"
          description="The share of the devices that report the arrival, in percent. Empty: as in the project's settings."
          placeholder="10"
          inputMode="decimal"
          value={receipts}
          onChange={(value) => change({ receipts: value })}
          error={problem("receipts")}
          maw={280}
        />
        {buttons.map(({ id, title, link, opens }, at) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: the id of a button is typed
          <fieldset key={at} className="button-fields">
            <legend>Button {at + 1}</legend>
            <SimpleGrid cols={{ base: 1, xs: opens ? 3 : 2 }} spacing="sm">
              <Field
                label="Button's title"
                value={title}
                maxLength={40}
                onChange={(value) => changeButton(at, { title: value })}
                error={problem(`buttons/${at}/title`)}
              />
              <Field
                label="Button's id"
                value={id}
                maxLength={32}
                onChange={(value) => changeButton(at, { id: value })}
                error={problem(`buttons/${at}/id`)}
              />
              {opens && (
                <Field
                  label="Button's link"
                  placeholder="the message's"
                  value={link}
                  onChange={(value) => changeButton(at, { link: value })}
                  error={problem(`buttons/${at}/link_to`)}
                />
              )}
            </SimpleGrid>
            <Group justify="space-between" gap={8} mt={8}>
              <Checkbox
                label="Opens the app"
                checked={opens}
                onChange={(event) => changeButton(at, { opens: event.currentTarget.checked })}
              />
              <SmallButton
                aria-label={`Remove button ${at + 1}`}
                onClick={() => change({ buttons: buttons.filter((_, other) => other !== at) })}
              >
                Remove
              </SmallButton>
            </Group>
          </fieldset>
        ))}
        {problem("buttons") && <Text c="var(--bad)">{problem("buttons")}</Text>}
        <Group gap={10}>
          <Button
            variant="default"
            size="xs"
            disabled={buttons.length === maxButtons}
            onClick={() => change({ buttons: [...buttons, newButton(buttons)] })}
          >
            Add a button
          </Button>
          <Note>The browser or the phone decides how many it shows.</Note>
        </Group>
        {isDrawn && (
          <Text c="var(--warn)" size="sm">
            Android: the app draws this notification itself. A phone on which the app was force-stopped, or that its
            vendor restricts, shows nothing of it.
          </Text>
        )}
      </Stack>
    </details>
  );
};
