import type { FieldSpec } from "./field-values.ts";

/** The fields of a message that are written by hand, by their names in the API. */
export const messageFields = {
  title: { label: "Title" },
  body: { label: "Text", as: "area", props: { minRows: 3, maxRows: 12 } },
  link_to: { label: "Link", half: true },
  image: { label: "Image", placeholder: "https://…", half: true },
} as const satisfies Readonly<Record<string, FieldSpec>>;

const title = "More fields as JSON";

/** Its other fields, as JSON. */
export const moreField = (hint: string, placeholder: string, check: FieldSpec["check"]): FieldSpec => ({
  label: title,
  hint,
  placeholder,
  as: "json",
  under: title,
  ...(check && { check }),
  props: { label: undefined, "aria-label": title, minRows: 3 },
});
