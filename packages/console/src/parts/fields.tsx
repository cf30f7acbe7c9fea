import {
  Box,
  Checkbox,
  FileButton,
  Group,
  Input,
  MultiSelect,
  NumberInput,
  PasswordInput,
  SegmentedControl,
  Select,
  SimpleGrid,
  Switch,
  TagsInput,
  Textarea,
} from "@mantine/core";
import { Field } from "./field.tsx";
import {
  type FieldInput,
  type FieldKind,
  type FieldSpec,
  type FieldsOf,
  isBlank,
  shownFields,
  type Values,
} from "./field-values.ts";
import { Folded } from "./folded.tsx";
import { SmallButton } from "./small-button.tsx";

const area: FieldInput = ({ onChange, ...props }) => (
  <Textarea onChange={(event) => onChange(event.currentTarget.value)} autosize {...props} />
);
const decimal: FieldInput = (props) => <Field inputMode="decimal" {...props} />;

const inputs: Readonly<Record<FieldKind, FieldInput>> = {
  text: Field,
  area,
  lines: area,
  secret: ({ onChange, ...props }) => (
    <PasswordInput onChange={(event) => onChange(event.currentTarget.value)} autoComplete="off" {...props} />
  ),
  json: area,
  time: (props) => <Field type="datetime-local" {...props} />,
  number: ({ data: _, ...props }) => <NumberInput allowDecimal={false} {...props} />,
  decimal,
  // As text, which the form keeps while a number is not whole.
  percent: ({ onChange, data: _, ...props }) => (
    <NumberInput onChange={(percent) => onChange(String(percent))} allowNegative={false} {...props} />
  ),
  switch: ({ value, onChange, data: _, placeholder: __, ...props }) => (
    <Switch checked={value === true} onChange={(event) => onChange(event.currentTarget.checked)} {...props} />
  ),
  select: ({ value, onChange, ...props }) => (
    <Select value={value || null} onChange={(next) => onChange(next ?? "")} allowDeselect={false} {...props} />
  ),
  segments: ({ label, error, description: _, placeholder: __, data = [], ...props }) => (
    <>
      <SegmentedControl aria-label={label} data={[...data]} fullWidth {...props} />
      {error && <Input.Error>{error}</Input.Error>}
    </>
  ),
  boxes: ({ data = [], placeholder: _, ...props }) => (
    <Checkbox.Group {...props}>
      <Group mt={6}>
        {data.map((choice) => (
          <Checkbox key={String(choice)} value={String(choice)} label={String(choice)} />
        ))}
      </Group>
    </Checkbox.Group>
  ),
  many: ({ placeholder, ...props }) => (
    <MultiSelect placeholder={props.value.length === 0 ? placeholder : undefined} searchable {...props} />
  ),
  tags: (props) => <TagsInput acceptValueOnBlur {...props} />,
};

const inputOf = ({ as = "text" }: FieldSpec): FieldInput =>
  typeof as === "string" ? inputs[as] : (as.input ?? inputs.text);

type Props = {
  readonly fields: FieldsOf<Values>;
  readonly values: Values;
  readonly change: (changes: Values) => void;
  readonly problemOf: (name: string) => string | undefined;
  /** Puts the cursor into the first field of a dialog. */
  readonly focus?: boolean;
};

/** The inputs of a form. */
export const FormFields = ({ fields, values, change, problemOf, focus = false }: Props) => {
  const shown = shownFields(fields, values);
  const [[first] = []] = shown;
  const show = ([name, field]: (typeof shown)[number]) => {
    const { label, as, hint, placeholder, choices, half, check, file, props } = field;
    const Input = inputOf(field);
    const onChange = (value: unknown) => change({ [name]: value });
    return (
      <Box key={name} style={half ? undefined : { gridColumn: "1 / -1" }}>
        <Input
          label={label}
          description={typeof hint === "function" ? hint(values[name] as never) : hint}
          placeholder={placeholder}
          {...(choices && { data: choices })}
          {...(typeof as === "object" && { problemOf: (path: string) => problemOf(`${name}/${path}`) })}
          value={values[name]}
          onChange={onChange}
          error={check?.(String(values[name])) ?? problemOf(name)}
          {...(focus && name === first && { "data-autofocus": true })}
          {...props}
        />
        {file && (
          <FileButton accept={file} onChange={(chosen) => void chosen?.text().then(onChange)}>
            {(button) => (
              <SmallButton mt="sm" {...button}>
                Read from a file
              </SmallButton>
            )}
          </FileButton>
        )}
      </Box>
    );
  };
  return [...new Set(shown.map(([, { under }]) => under))].map((under) => {
    const own = shown.filter(([, field]) => field.under === under);
    const inputs = (
      <SimpleGrid key="" cols={{ base: 1, xs: 2 }} spacing="sm" verticalSpacing="sm">
        {own.map(show)}
      </SimpleGrid>
    );
    if (under === undefined) return inputs;
    return (
      <Folded
        key={under}
        title={under}
        open={own.some(([name]) => !isBlank(values[name]) || problemOf(name) !== undefined)}
      >
        {inputs}
      </Folded>
    );
  });
};
