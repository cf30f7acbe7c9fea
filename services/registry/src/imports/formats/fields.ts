import { AppId, InstallationId, isObject, lineLimits } from "@herald/contracts";
import { HeraldError } from "@herald/kit";
import { readIdentifiers } from "@herald/rules";
import { type OwnField, ownData } from "./own-data.ts";
import { type PlatformFields, plainName, platformNamed, type UnsupportedPlatform } from "./platform-names.ts";
import { booleanFrom, definedFields, listFrom, objectFrom, textFrom, timeFrom } from "./values.ts";

/** A row of an export: the fields of a JSON object, or the cells of a CSV row by their columns. Cells of one column twice are a list. */
export type ImportRow = Readonly<Record<string, unknown>>;

/** What an import reports about a field of a line. `name`: where it is stored. */
export type FieldNote = {
  readonly kind: "unknown" | "invalid" | "renamed";
  readonly field: string;
  readonly name?: string;
};

/** A device as `PUT /devices` takes it, not validated yet. */
export type MappedRow = { readonly device: unknown } | UnsupportedPlatform;
export type MapRow = (fields: Fields) => MappedRow;

/** How rows of an export become devices. */
export type FormatReader = {
  /** Objects whose fields count as fields of the row, as in columns such as `User.UserId`. */
  readonly groups?: readonly string[];
  readonly object: MapRow;
  /** Absent: as `object`. */
  readonly cells?: MapRow;
  /** For lines that need not be JSON. */
  readonly line?: (text: string) => ImportRow | undefined;
};

type Field = {
  readonly name: string;
  /** {@link plainName} of it. */
  readonly plain: string;
  readonly value: unknown;
  isUsed: boolean;
};

const isBlank = (value: unknown): boolean =>
  value === null ||
  (typeof value === "string" && value.trim() === "") ||
  (typeof value === "object" && Object.keys(value).length === 0);

const validOr =
  <Value>(schema: { safeParse: (value: unknown) => { data?: Value | undefined } }) =>
  (value: unknown) =>
    schema.safeParse(textFrom(value)).data;

const identifier = (name: "current_time_zone" | "current_locale") => (value: unknown) =>
  textFrom(readIdentifiers({ [name]: textFrom(value) }).identifiers[name]);

const none: readonly Field[] = [];

/**
 * The fields of a row. Reads take the names under which exports write a field, in any upper and lower case, with or without `_`, `-` and
 * spaces, and return the first valid value; they remember what was read, so that the rest can be reported.
 */
export const createFields = (row: ImportRow, groups: readonly string[] = []) => {
  const fields: Field[] = [];
  const byName = new Map<string, Field[]>();
  const notes: FieldNote[] = [];
  const add = (name: string, value: unknown): void => {
    const plain = plainName(name);
    if (isObject(value) && groups.includes(plain)) {
      for (const [inner, one] of Object.entries(value)) add(`${name}.${inner}`, one);
      return;
    }
    const field = { name, plain, value, isUsed: false };
    fields.push(field);
    const others = byName.get(plain);
    if (others) others.push(field);
    else byName.set(plain, [field]);
  };
  for (const [name, value] of Object.entries(row)) add(name, value);

  /** Those of exactly this name come first. */
  const fieldsNamed = (name: string): readonly Field[] => {
    const found = byName.get(plainName(name)) ?? none;
    return found.length < 2 ? found : found.toSorted((one, other) => +(other.name === name) - +(one.name === name));
  };
  const read = <Value>(names: readonly string[], parse: (value: unknown) => Value | undefined): Value | undefined => {
    for (const name of names) {
      for (const field of fieldsNamed(name)) {
        if (field.isUsed || isBlank(field.value)) continue;
        field.isUsed = true;
        const parsed = parse(field.value);
        if (parsed !== undefined) return parsed;
        notes.push({ kind: "invalid", field: field.name });
      }
    }
    return undefined;
  };
  const reader =
    <Value>(parse: (value: unknown) => Value | undefined) =>
    (...names: string[]): Value | undefined =>
      read(names, parse);

  /** The fields that nothing has read and `isOwn` accepts, as the app's own. `depth`: names before their keys. */
  const own = (depth: number, isOwn: (field: Field) => boolean): OwnField[] =>
    fields.flatMap((field) => {
      if (field.isUsed || !isOwn(field)) return [];
      field.isUsed = true;
      const { name, value } = field;
      return { field: name, key: depth === 0 ? name : name.split(".").slice(depth).join("."), value };
    });

  return {
    text: reader(textFrom),
    time: reader(timeFrom),
    boolean: reader(booleanFrom),
    list: reader(listFrom),
    object: reader(objectFrom),
    zone: reader(identifier("current_time_zone")),
    locale: reader(identifier("current_locale")),
    app: reader(validOr(AppId)),
    installationId: reader(validOr(InstallationId)),
    platform: reader((value) => platformNamed(textFrom(value))),
    read,
    /** The app's own fields in a group. */
    under: (group: string): OwnField[] => {
      const prefix = `${plainName(group)}.`;
      return own(group.split(".").length, ({ plain }) => plain.startsWith(prefix));
    },
    /** All fields that nothing has read, without those that stay unused. */
    rest: (isLeft: (name: string) => boolean): OwnField[] => own(0, ({ name }) => !isLeft(name)),
    note: (note: FieldNote): void => {
      notes.push(note);
    },
    /** What the report says of this row, after everything was read. */
    notes: (): readonly FieldNote[] => {
      for (const { name, value, isUsed } of fields)
        if (!isUsed && !isBlank(value)) notes.push({ kind: "unknown", field: name });
      return notes;
    },
  };
};
export type Fields = ReturnType<typeof createFields>;

const topicName = /^(?!\.{1,2}$)(?!all$)(?!(?:dev|top)_)[A-Za-z0-9._~-]{1,128}$/;

/** As iOS shows a token as text, and tools that stored it so. */
const spacedToken = /^<?[0-9a-fA-F]+(?:\s+[0-9a-fA-F]+)*>?$/;
/** A registration token of FCM: an Installation ID, a colon and more. */
const fcmToken = /^[\w-]{10,}:[\w-]{20,}$/;
const expoToken = /^Expo(?:nent)?PushToken\[/;

type DeviceFields = Partial<Omit<PlatformFields, "environment">> & {
  readonly token: string | undefined;
  /** Tags or channels: valid topic names become topics, the others `tags` in the metadata. */
  readonly labels?: readonly unknown[] | undefined;
  readonly own?: readonly OwnField[];
  readonly identifiers?: ImportRow;
  readonly [field: string]: unknown;
};

/**
 * The device with only the fields that the export has.
 * @throws HeraldError `validation-failed` for too many labels.
 */
export const deviceOf = (
  fields: Fields,
  { token: given, labels = [], own = [], identifiers = {}, ...rest }: DeviceFields,
): MappedRow => {
  if (given !== undefined && expoToken.test(given)) return platformNamed("expo") as UnsupportedPlatform;
  if (labels.length > lineLimits.values)
    throw new HeraldError("validation-failed", `topics: may have at most ${lineLimits.values} entries`);
  const names = [...new Set(labels.flatMap((label) => textFrom(label) ?? []))];
  const topics = names.filter((name) => topicName.test(name));
  const tags = names.filter((name) => !topicName.test(name));
  const data = tags.length > 0 ? [...own, { field: "tags", key: "tags", value: tags }] : own;
  const metadata = ownData(data, "metadata", (field, name) => fields.note({ kind: "renamed", field, name }));
  // Flutter, React Native and Firebase apps have FCM tokens on iOS.
  const isFcm = rest.platform === "ios" && given !== undefined && fcmToken.test(given);
  const token =
    rest.platform === "ios" && given !== undefined && spacedToken.test(given) ? given.replaceAll(/[<>\s]/g, "") : given;
  const device = {
    token,
    ...rest,
    ...(isFcm && { provider: "fcm", environment: undefined }),
    topics: topics.length > 0 ? topics : undefined,
    metadata: Object.keys(metadata).length > 0 ? metadata : undefined,
    identifiers: definedFields(identifiers),
  };
  return { device: definedFields(device) ?? {} };
};

/** Identifiers of which a time zone or locale that is not valid is left out: the device matters more. */
export const readableIdentifiers = (fields: Fields, sent: unknown): Record<string, unknown> | undefined => {
  if (!isObject(sent)) return undefined;
  const { identifiers, problems } = readIdentifiers(sent);
  for (const { field } of problems) fields.note({ kind: "invalid", field });
  return identifiers;
};
