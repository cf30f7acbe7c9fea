import type { NewTemplate, Template } from "@herald/client";
import { enteredOf, sentOf } from "../../parts/field-values.ts";
import { type Json, objectOf } from "../../parts/json.ts";
import { messageFields } from "../../parts/message-fields.ts";
import { exampleOfVariable, typedValue } from "../../parts/variable.ts";

/** A variable as the form shows it. */
export type Variable = {
  readonly name: string;
  readonly type: string;
  /** Empty: a send must give a value. */
  readonly fallback: string;
  /** The value of the preview; empty: an example of the type. */
  readonly sample: string;
};

/** A template, field by field as the form shows it. */
export type Edited = Readonly<Record<keyof typeof messageFields, string>> & {
  readonly variables: readonly Variable[];
  /** Further fields as JSON. */
  readonly more: string;
};

/** A stored template for the form. */
export const editedOf = ({ content }: Pick<Template, "content">): Edited => {
  const { variables = {}, ...fields } = content;
  const more = Object.entries(fields).filter(([name]) => !Object.hasOwn(messageFields, name));
  return {
    ...(enteredOf(messageFields, fields) as Pick<Edited, keyof typeof messageFields>),
    variables: Object.entries(variables).map(([name, { type, fallback }]) => ({
      name,
      type,
      fallback: fallback === undefined ? "" : String(fallback),
      sample: "",
    })),
    more: more.length === 0 ? "" : JSON.stringify(Object.fromEntries(more), null, 2),
  };
};

export const newTemplate: Edited = editedOf({ content: {} });

/** Undefined when it is not a JSON object. */
export const moreFieldsOf = ({ more }: Pick<Edited, "more">): Json | undefined =>
  more.trim() === "" ? {} : objectOf(more);

/** The content that the form describes. */
export const contentOfTemplate = (edited: Edited): NewTemplate => {
  const declared = edited.variables.map(({ name, type, fallback }) => [
    name.trim(),
    { type, ...(fallback !== "" && { fallback: typedValue(type, fallback) }) },
  ]);
  return {
    ...moreFieldsOf(edited),
    ...sentOf(messageFields, edited),
    ...(declared.length > 0 && { variables: Object.fromEntries(declared) }),
  };
};

/** The values of the preview. */
export const samplesOf = ({ variables }: Edited): Record<string, string | number | boolean> =>
  Object.fromEntries(
    variables.map(({ name, type, fallback, sample }) => [
      name.trim(),
      typedValue(type, sample || fallback || exampleOfVariable(type, name.trim())),
    ]),
  );
