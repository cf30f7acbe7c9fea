import { FormButton } from "./form.tsx";
import { type Json, objectOf } from "./json.ts";

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
};

/** A JSON object that people edit as text. */
export const JsonEditor = ({ title, value, save }: Props) => (
  <FormButton<{ json: Json }>
    label="Edit"
    title={title}
    verb="Save"
    size="lg"
    fields={{
      json: {
        label: title,
        as: "json",
        check: (text) => (objectOf(text) ? undefined : 'Write a JSON object, such as { "priority": "normal" }'),
        props: { label: undefined, "aria-label": title, minRows: 8, maxRows: 20 },
      },
    }}
    initial={{ json: value }}
    act={({ json }) => save(json)}
  />
);
