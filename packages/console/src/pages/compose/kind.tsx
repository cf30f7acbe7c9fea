import { Select } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { admin, useProject } from "../../api/clients.ts";
import type { Draft } from "./draft.ts";

type Props = {
  readonly draft: Draft;
  readonly change: (changes: Partial<Draft>) => void;
  readonly error?: string | undefined;
};

const noKind = "No kind: cannot be switched off";

/** The kind of a notification, among those that the project declares: what people have switched off they do not get. */
export const KindField = ({ draft: { kind }, change, error }: Props) => {
  const { id } = useProject();
  const { data } = useQuery({
    queryKey: [id, "kinds", "declared"],
    // As many as a project can have.
    queryFn: async ({ signal }) => (await admin.kinds.list(id, { signal, perPage: 100 }).page()).data,
  });
  const chosen = data?.find((one) => one.kind === kind);
  const about = () => {
    if (kind === "") return "Everyone who matches gets it, also people who have switched kinds off.";
    if (data === undefined) return undefined;
    if (chosen === undefined) return "The project does not declare this kind: everyone who matches gets it.";
    if (chosen.critical) return "Critical: people cannot switch it off, and neither quiet hours nor caps apply.";
    const cap = chosen.frequency_cap;
    const most = cap ? ` A person gets at most ${cap.count} per ${cap.per}.` : "";
    return chosen.on_by_default
      ? `People who have switched it off do not get it.${most}`
      : `Only people who have switched it on get it.${most}`;
  };
  return (
    <Select
      label="Kind"
      description={about()}
      data={[
        { value: "", label: noKind },
        ...(data ?? []).map(({ kind: value, title: label }) => ({ value, label })),
        ...(kind !== "" && chosen === undefined ? [{ value: kind, label: kind }] : []),
      ]}
      value={kind}
      onChange={(next) => change({ kind: next ?? "" })}
      allowDeselect={false}
      error={error}
    />
  );
};
