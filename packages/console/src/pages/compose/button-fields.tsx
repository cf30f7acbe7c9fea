import { Button, Fieldset, Group, Input, Stack } from "@mantine/core";
import type { InputProps, Values } from "../../parts/field-values.ts";
import { FormFields } from "../../parts/fields.tsx";
import { SmallButton } from "../../parts/small-button.tsx";
import { buttonFields, maxButtons, newButton } from "./button-values.ts";

/** The buttons of a draft. */
export const ButtonInputs = ({ value: buttons, onChange, error, problemOf }: InputProps<readonly Values[]>) => (
  <Stack gap="sm">
    {buttons.map((button, place) => (
      // biome-ignore lint/suspicious/noArrayIndexKey: the id of a button is typed
      <Fieldset key={place} legend={`Button ${place + 1}`} p="sm" pt={4}>
        <FormFields
          fields={buttonFields}
          values={button}
          change={(changes) => onChange(buttons.map((one, at) => (at === place ? { ...one, ...changes } : one)))}
          problemOf={(name) => problemOf?.(`${place}/${name}`)}
        />
        <Group justify="flex-end">
          <SmallButton
            aria-label={`Remove button ${place + 1}`}
            onClick={() => onChange(buttons.filter((_, at) => at !== place))}
          >
            Remove
          </SmallButton>
        </Group>
      </Fieldset>
    ))}
    {error && <Input.Error>{error}</Input.Error>}
    <Group gap={10}>
      <Button
        variant="default"
        size="xs"
        disabled={buttons.length === maxButtons}
        onClick={() => onChange([...buttons, newButton(buttons)])}
      >
        Add a button
      </Button>
      <Input.Description>The browser or the phone decides how many it shows.</Input.Description>
    </Group>
  </Stack>
);
