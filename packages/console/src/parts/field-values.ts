import type { ReactNode } from "react";
import { objectOf } from "./json.ts";

/** What a person has entered, by the names of the fields. */
export type Values = Readonly<Record<string, unknown>>;

type Choice = string | { readonly value: string; readonly label: string };

export type InputProps<Value> = {
  readonly label: string;
  readonly description?: string | undefined;
  readonly placeholder?: string | undefined;
  readonly error?: string | undefined;
  readonly value: Value;
  readonly onChange: (value: Value) => void;
  readonly data?: readonly Choice[] | undefined;
  /** For an input of its own: what is wrong with a part of its value. */
  readonly problemOf?: (path: string) => string | undefined;
};

// biome-ignore lint/suspicious/noExplicitAny: each input has a type of its own
export type FieldInput = (props: InputProps<any>) => ReactNode;

/** `show` makes what is entered of the API's value, and `read` the reverse; undefined is not sent. Default: they are the same. */
type Conversion = {
  readonly show?: (value: unknown) => unknown;
  // biome-ignore lint/suspicious/noExplicitAny: as above
  readonly read?: (entered: any) => unknown;
};

/** A field of a form. Its name is the API's, so that the problems of a request are shown beside it. */
export type FieldSpec = {
  readonly label: string;
  readonly hint?: string | ((value: never) => string);
  readonly placeholder?: string | undefined;
  /** How it is entered. Default: as a line of text. */
  readonly as?: keyof typeof conversions | (Conversion & { readonly input?: FieldInput });
  readonly choices?: readonly Choice[];
  readonly required?: true;
  /** Half as wide as the form, if there is room. */
  readonly half?: true;
  /** Folded under these words, until it has a value. */
  readonly under?: string;
  readonly when?: (values: Values) => boolean;
  /** What is wrong with what was entered, before it is sent. */
  readonly check?: (entered: string) => string | undefined;
  /** Files that fill the field, as `accept` of a file input. */
  readonly file?: string;
  /** Sent for an empty field. */
  readonly empty?: null;
  /** Further properties of the input. */
  readonly props?: object;
};

/** The fields of a request, in the order in which they are shown. */
export type FieldsOf<Body> = { readonly [Name in keyof Body & string]?: FieldSpec };

const textOf = (value: unknown): string => (typeof value === "string" ? value : "");
const listOf = (value: unknown): unknown[] => (Array.isArray(value) ? [...value] : []);
const trimmed = (text: string) => text.trim() || undefined;
const unlessBlank = (text: string) => (text.trim() === "" ? undefined : text);

/** A typed number, also with a comma. */
const decimalOf = (text: string): number | undefined =>
  text.trim() === "" ? undefined : Number(text.replace(",", "."));

const percentOf = (text: string): number | undefined => {
  const percent = decimalOf(text);
  return percent === undefined ? undefined : percent / 100;
};

const conversions = {
  text: { show: textOf, read: trimmed },
  /** Several lines, sent as they are written. */
  area: { show: textOf, read: unlessBlank },
  /** A list, an entry in each line. */
  lines: { show: (value) => listOf(value).join("\n"), read: (text: string) => trimmed(text)?.split(/[\s,]+/) },
  /** Herald does not show it again. */
  secret: { show: () => "", read: trimmed },
  /** A JSON object. The API explains what is wrong with another text. */
  json: {
    show: (value) => (value === undefined ? "" : JSON.stringify(value, null, 2)),
    read: (text: string) => objectOf(text) ?? unlessBlank(text),
  },
  /** In the time zone of the browser. */
  time: { show: textOf, read: (text: string) => (text === "" ? undefined : new Date(text).toISOString()) },
  number: {
    show: (value) => value ?? "",
    read: (value: number | string) => (value === "" ? undefined : Number(value)),
  },
  decimal: { show: (value) => (value === undefined ? "" : String(value)), read: decimalOf },
  /** A share, entered in percent. */
  percent: {
    show: (share) => (share === undefined ? "" : String(Math.round(Number(share) * 1e6) / 1e4)),
    read: percentOf,
  },
  switch: {},
  select: { show: textOf, read: trimmed },
  /** A choice of which all values are seen. */
  segments: { show: textOf, read: trimmed },
  boxes: { show: listOf },
  many: {
    show: listOf,
    read: (chosen: readonly string[]) => (chosen.length === 0 ? undefined : chosen),
  },
  tags: { show: listOf },
} satisfies Readonly<Record<string, Conversion>>;

/** The ways to enter a value that any form may use. */
export type FieldKind = keyof typeof conversions;

const conversionOf = ({ as = "text" }: FieldSpec): Conversion => (typeof as === "string" ? conversions[as] : as);

const entriesOf = (fields: FieldsOf<Values>) => Object.entries(fields) as [string, FieldSpec][];

/** What the form shows of the API's values. */
export const enteredOf = (fields: FieldsOf<Values>, values: Values): Values =>
  Object.fromEntries(
    entriesOf(fields).map(([name, field]) => {
      const { show } = conversionOf(field);
      return [name, show ? show(values[name]) : values[name]];
    }),
  );

/** The API's values of what was entered. */
export const sentOf = (fields: FieldsOf<Values>, entered: Values): Values =>
  Object.fromEntries(
    entriesOf(fields).flatMap(([name, field]) => {
      const { read } = conversionOf(field);
      const value = (read ? read(entered[name]) : entered[name]) ?? field.empty;
      return value === undefined ? [] : [[name, value]];
    }),
  );

export const shownFields = (fields: FieldsOf<Values>, values: Values) =>
  entriesOf(fields).filter(([, { when }]) => when?.(values) ?? true);

export const isBlank = (value: unknown): boolean =>
  value === undefined || (Array.isArray(value) ? value.length === 0 : String(value).trim() === "");

/** Whether everything required was entered, and nothing is wrong with it. */
export const isComplete = (fields: FieldsOf<Values>, values: Values): boolean =>
  shownFields(fields, values).every(
    ([name, { required, check }]) =>
      !(required && isBlank(values[name])) && check?.(String(values[name])) === undefined,
  );
