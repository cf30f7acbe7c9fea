import { Button, type ButtonProps, type ElementProps, Group, Modal, Text } from "@mantine/core";
import { type ReactNode, useState } from "react";
import { pointersByField, problemsOf } from "../api/problems.ts";
import { useAct } from "../api/read.ts";
import { Form } from "./field.tsx";
import { enteredOf, type FieldsOf, isComplete, sentOf, shownFields, type Values } from "./field-values.ts";
import { FormFields } from "./fields.tsx";
import { isJsonObject } from "./json.ts";
import { Problem } from "./problem.tsx";
import { SecretOnce } from "./secret.tsx";
import { SmallButton } from "./small-button.tsx";

type FormOf<Body, Result> = {
  readonly fields?: FieldsOf<Body> | undefined;
  /** What the fields show first, as the API has it. */
  readonly initial?: object | undefined;
  readonly act: (body: Body) => Promise<Result>;
  readonly onDone?: ((result: Result) => void) | undefined;
};

/** The state of a form. `inputs` has its fields, and the problems that are beside none of them. */
export const useForm = <Body, Result>(
  { fields: given = {}, initial = {}, act, onDone }: FormOf<Body, Result>,
  focus = false,
) => {
  const fields = given as FieldsOf<Values>;
  const [values, setValues] = useState(() => enteredOf(fields, initial as Values));
  const acting = useAct(() => act(sentOf(fields, values) as Body), onDone);
  const names = shownFields(fields, values).map(([name]) => name);
  const pointers = pointersByField(acting.error, names);
  const inputs = (
    <>
      <FormFields
        fields={fields}
        values={values}
        change={(changes) => setValues((now) => ({ ...now, ...changes }))}
        problemOf={(name) => pointers[name] && problemsOf(acting.error, pointers[name])}
        focus={focus}
      />
      {acting.error !== null && <Problem error={acting.error} marked={Object.values(pointers)} />}
    </>
  );
  return { acting, inputs, isReady: isComplete(fields, values) };
};

type DialogProps<Body, Result> = FormOf<Body, Result> & {
  readonly title: string;
  /** The label of the button that acts: a verb with its object. */
  readonly verb: string;
  /** What follows from the act. */
  readonly about?: string | undefined;
  readonly danger?: boolean;
  readonly ready?: boolean;
  /** The label of the button that closes the dialog. Default: `Cancel`; a dialog that stays open after its act uses `Close`. */
  readonly leave?: string;
  /** Stands below the fields; a function gets the result of the act. */
  readonly children?: ReactNode | ((result: Result | undefined) => ReactNode);
  readonly size?: string | undefined;
  readonly opened?: boolean;
  readonly onClose: () => void;
};

const DialogForm = <Body, Result>(props: DialogProps<Body, Result>) => {
  const { verb, about, danger = false, ready = true, leave = "Cancel", children, onClose } = props;
  const { acting, inputs, isReady } = useForm(props, true);
  return (
    <Form onSubmit={() => acting.mutate()}>
      {about && <Text>{about}</Text>}
      {inputs}
      {typeof children === "function" ? children(acting.data) : children}
      <Group justify="flex-end" gap="xs">
        <Button variant="default" onClick={onClose}>
          {leave}
        </Button>
        <Button
          type="submit"
          color={danger ? "red.9" : undefined}
          loading={acting.isPending}
          disabled={!ready || !isReady}
        >
          {verb}
        </Button>
      </Group>
    </Form>
  );
};

/** A form in a dialog. Errors of the API are shown beside their fields, and above its buttons. */
export const FormDialog = <Body = Values, Result = unknown>(props: DialogProps<Body, Result>) => {
  const { opened = true, onClose, title, size, about } = props;
  return (
    <Modal
      opened={opened}
      onClose={onClose}
      title={title}
      size={size ?? "md"}
      closeOnClickOutside={about !== undefined}
    >
      <DialogForm {...props} />
    </Modal>
  );
};

type ButtonOf = ButtonProps & ElementProps<"button", keyof ButtonProps>;

type FormButtonProps<Body, Result> = Omit<DialogProps<Body, Result>, "opened" | "onClose"> & {
  readonly label: ReactNode;
  /** Properties of the button, which is small by default. */
  readonly button?: ButtonOf;
  /** The title of the secret that the act resolves to as `secret`. It is shown once. */
  readonly secretTitle?: string;
};

/** A button that opens a form in a dialog. The dialog closes after the act, unless it shows the result. */
export const FormButton = <Body = Values, Result = unknown>(props: FormButtonProps<Body, Result>) => {
  const { label, button, secretTitle, onDone, ...dialog } = props;
  const [opened, setOpened] = useState(false);
  const [made, setMade] = useState<{ readonly secret?: string | undefined }>();
  const close = () => setOpened(false);
  return (
    <>
      <SmallButton {...button} onClick={() => setOpened(true)}>
        {label}
      </SmallButton>
      <FormDialog
        {...dialog}
        opened={opened}
        onClose={close}
        onDone={(result) => {
          if (typeof dialog.children !== "function") close();
          if (secretTitle && isJsonObject(result)) setMade(result);
          onDone?.(result);
        }}
      />
      {secretTitle && made && <SecretOnce title={secretTitle} value={made.secret} onClose={() => setMade(undefined)} />}
    </>
  );
};

/** Properties of the button that adds a row to a list. */
export const adding = { size: "sm", variant: "filled" } as const;

/** A button that asks before it deletes. */
export const Confirm = <Body, Result>(props: Omit<FormButtonProps<Body, Result>, "label"> & { label?: string }) => (
  <FormButton label="Delete" danger {...props} button={{ c: "var(--bad)", ...props.button }} />
);
