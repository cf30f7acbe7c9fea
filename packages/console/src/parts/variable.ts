/** The types that a template declares for its variables. */
export const variableTypes = ["string", "number", "boolean", "datetime"] as const;

/** A typed value as the API takes it. A text that is not of the type is sent as it is, so that the API says what is wrong. */
export const typedValue = (type: string, text: string): string | number | boolean => {
  if (type === "number" && text.trim() !== "" && Number.isFinite(Number(text))) return Number(text);
  if (type === "boolean" && (text === "true" || text === "false")) return text === "true";
  return text;
};

/** A value of the type, to preview a text before a value is typed. */
export const exampleOfVariable = (type: string, name: string): string =>
  ({ number: "2", boolean: "true", datetime: new Date().toISOString() })[type] ?? name;
