import { Button, type ButtonProps, Fieldset, Group, Stack, TextInput, type TextInputProps } from "@mantine/core";
import { type FormEvent, type ReactNode, useState } from "react";

type FieldProps = Omit<TextInputProps, "onChange"> & { readonly onChange: (text: string) => void };

/** A text input whose `onChange` gets the text. */
export const Field = ({ onChange, ...props }: FieldProps) => (
  <TextInput onChange={(event) => onChange(event.currentTarget.value)} {...props} />
);

type FormProps = {
  readonly onSubmit: () => void;
  readonly inline?: boolean;
  /** Shows the fields to an operator who may not change them. */
  readonly disabled?: boolean;
  readonly children: ReactNode;
};

/** A form that the page itself submits. */
export const Form = ({ onSubmit, inline = false, disabled = false, children }: FormProps) => (
  <form
    onSubmit={(event: FormEvent) => {
      event.preventDefault();
      onSubmit();
    }}
  >
    {inline ? (
      <Group gap={8} wrap="nowrap">
        {children}
      </Group>
    ) : (
      <Fieldset variant="unstyled" disabled={disabled}>
        <Stack gap="sm">{children}</Stack>
      </Fieldset>
    )}
  </form>
);

type FindProps = Pick<TextInputProps, "size" | "leftSection"> &
  Pick<ButtonProps, "variant"> & {
    readonly label: string;
    readonly verb: string;
    readonly initial?: string;
    readonly onFind: (text: string) => void;
  };

/** A field and its button in one line. */
export const FindForm = ({ label, verb, initial = "", onFind, variant, ...field }: FindProps) => {
  const [typed, setTyped] = useState(initial);
  return (
    <Form onSubmit={() => onFind(typed.trim())} inline>
      <Field {...field} className="grow" aria-label={label} placeholder={label} value={typed} onChange={setTyped} />
      <Button type="submit" size={field.size} variant={variant} disabled={typed.trim() === ""}>
        {verb}
      </Button>
    </Form>
  );
};
