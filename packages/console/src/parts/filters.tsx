import { Select, TextInput } from "@mantine/core";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { type CSSProperties, useState } from "react";
import { texts } from "../texts/common.ts";

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
  return { search, set, page: Number(search.page ?? 1), setPage: (page: number) => set({ page: String(page) }) };
};

type ChoiceProps = {
  readonly name: string;
  readonly label: string;
  /** As they are in the address, or with what each is called. */
  readonly values: readonly string[] | Readonly<Record<string, string>>;
};

export const ChoiceFilter = ({ name, label, values }: ChoiceProps) => {
  const { search, set } = useFilters();
  const chosen = search[name] ?? "";
  const named = Array.isArray(values)
    ? values.map((value: string) => ({ value, label: value }))
    : Object.entries(values).map(([value, text]) => ({ value, label: text }));
  // A link may have one that is not offered.
  const isOther = chosen !== "" && !named.some(({ value }) => value === chosen);
  return (
    <Select
      aria-label={label}
      size="xs"
      className="filter"
      value={chosen}
      onChange={(value) => set({ [name]: value ?? undefined })}
      data={[
        { value: "", label: `${label}: ${texts.common.all.toLowerCase()}` },
        ...named,
        ...(isOther ? [{ value: chosen, label: chosen }] : []),
      ]}
      allowDeselect={false}
      comboboxProps={{ width: "max-content", position: "bottom-start" }}
    />
  );
};

type TextProps = { readonly name: string; readonly label: string; readonly width?: number; readonly type?: string };

/** Applied by Enter or by leaving it. */
export const TextFilter = ({ name, label, width = 220, type = "text" }: TextProps) => {
  const { search, set } = useFilters();
  const [typed, setTyped] = useState(search[name] ?? "");
  const apply = () => typed.trim() !== (search[name] ?? "") && set({ [name]: typed.trim() });
  return (
    <TextInput
      size="xs"
      className="filter"
      style={{ "--filter-width": `${width}px` } as CSSProperties}
      type={type}
      aria-label={label}
      placeholder={label}
      {...(type === "date" && { leftSection: <span className="muted small">{label}</span>, leftSectionWidth: 44 })}
      value={typed}
      onChange={(event) => setTyped(event.currentTarget.value)}
      onBlur={apply}
      onKeyDown={(event) => event.key === "Enter" && apply()}
    />
  );
};

/** A day as the API wants it: its first moment here. */
export const dayStart = (day: string | undefined, later = 0): string | undefined => {
  if (day === undefined) return undefined;
  const at = new Date(`${day}T00:00`);
  at.setDate(at.getDate() + later);
  return Number.isNaN(at.getTime()) ? undefined : at.toISOString();
};
