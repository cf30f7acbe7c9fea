import { Select, TextInput } from "@mantine/core";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { useState } from "react";
import { Note } from "./page.tsx";

/** The filters of a list live in the page's address, so that a link shows the same rows. */
export const useFilters = () => {
  const search = useSearch({ strict: false }) as Readonly<Record<string, string | undefined>>;
  const navigate = useNavigate();
  const set = (changes: Readonly<Record<string, string | undefined>>) => {
    const next = Object.fromEntries(
      Object.entries({ ...search, page: undefined, ...changes }).filter(
        ([, value]) => value !== undefined && value !== "",
      ),
    );
    void navigate({ to: ".", search: next, replace: true } as never);
  };
  const filtered = Object.keys(search).some((name) => name !== "page");
  return {
    search,
    filtered,
    set,
    page: Number(search.page ?? 1),
    setPage: (page: number) => set({ page: String(page) }),
  };
};

/** On a phone filters share their rows. */
const filterSize = (width: number) =>
  ({ size: "xs", w: { base: "auto", xs: width }, flex: { base: "1 1 140px", xs: "none" } }) as const;

type ChoiceProps = {
  readonly name: string;
  readonly label: string;
  /** Values as they stand in the address, or a label for each. */
  readonly values: readonly string[] | Readonly<Record<string, string>>;
};

export const ChoiceFilter = ({ name, label, values }: ChoiceProps) => {
  const { search, set } = useFilters();
  const chosen = search[name] ?? "";
  const named = Array.isArray(values)
    ? values.map((value: string) => ({ value, label: value }))
    : Object.entries(values).map(([value, text]) => ({ value, label: text }));
  // A link may contain a value that the list does not offer.
  const isOther = chosen !== "" && !named.some(({ value }) => value === chosen);
  return (
    <Select
      aria-label={label}
      {...filterSize(150)}
      value={chosen}
      onChange={(value) => set({ [name]: value ?? undefined })}
      data={[{ value: "", label: `${label}: all` }, ...named, ...(isOther ? [{ value: chosen, label: chosen }] : [])]}
      allowDeselect={false}
      comboboxProps={{ width: "max-content", position: "bottom-start" }}
    />
  );
};

type TextProps = { readonly name: string; readonly label: string; readonly width?: number; readonly type?: string };

/** A text filter that Enter or leaving the field applies. */
export const TextFilter = ({ name, label, width = 220, type = "text" }: TextProps) => {
  const { search, set } = useFilters();
  const [typed, setTyped] = useState(search[name] ?? "");
  const apply = () => typed.trim() !== (search[name] ?? "") && set({ [name]: typed.trim() });
  return (
    <TextInput
      {...filterSize(width)}
      type={type}
      aria-label={label}
      placeholder={label}
      {...(type === "date" && {
        leftSection: <Note>{label}</Note>,
        leftSectionWidth: 44,
      })}
      value={typed}
      onChange={(event) => setTyped(event.currentTarget.value)}
      onBlur={apply}
      onKeyDown={(event) => event.key === "Enter" && apply()}
    />
  );
};

/** Days as `from` and `until`. */
export const DayFilters = () => (
  <>
    <TextFilter name="from" label="From" type="date" width={172} />
    <TextFilter name="until" label="Until" type="date" width={172} />
  </>
);

/** The start of a day in this browser's time zone, as an ISO time; `later` adds days. */
export const dayStart = (day: string | undefined, later = 0): string | undefined => {
  if (day === undefined) return undefined;
  const at = new Date(`${day}T00:00`);
  at.setDate(at.getDate() + later);
  return Number.isNaN(at.getTime()) ? undefined : at.toISOString();
};
