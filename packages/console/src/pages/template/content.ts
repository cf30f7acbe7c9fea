import type { NewTemplate, Template } from "@herald/client";
import { type Json, objectOf } from "../../parts/json.ts";
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
export type Edited = {
  readonly title: string;
  readonly body: string;
  readonly link: string;
  readonly image: string;
  readonly variables: readonly Variable[];
  /** Further fields as JSON. */
  readonly more: string;
};

export const newTemplate: Edited = { title: "", body: "", link: "", image: "", variables: [], more: "" };

/** A stored template for the form. */
export const editedOf = ({ content }: Pick<Template, "content">): Edited => {
  const { title = "", body = "", link_to: link = "", image = "", variables = {}, ...more } = content;
  return {
    title,
    body,
    link,
    image,
    variables: Object.entries(variables).map(([name, { type, fallback }]) => ({
      name,
      type,
      fallback: fallback === undefined ? "" : String(fallback),
      sample: "",
    })),
    more: Object.keys(more).length === 0 ? "" : JSON.stringify(more, null, 2),
  };
};

/** Undefined when it is not a JSON object. */
export const moreFieldsOf = ({ more }: Edited): Json | undefined => (more.trim() === "" ? {} : objectOf(more));

/** The content that the form describes. */
export const contentOfTemplate = (edited: Edited): NewTemplate => {
  const { title, body, link, image, variables } = edited;
  const declared = variables.map(({ name, type, fallback }) => [
    name.trim(),
    { type, ...(fallback !== "" && { fallback: typedValue(type, fallback) }) },
  ]);
  return {
    ...moreFieldsOf(edited),
    ...(title !== "" && { title }),
    ...(body !== "" && { body }),
    ...(link.trim() !== "" && { link_to: link.trim() }),
    ...(image.trim() !== "" && { image: image.trim() }),
    ...(variables.length > 0 && { variables: Object.fromEntries(declared) }),
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
