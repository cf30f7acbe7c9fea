import { TagsInput } from "@mantine/core";
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { useProject } from "../../api/clients.ts";
import { composeTexts } from "../../texts/compose.ts";

type Props = {
  readonly value: readonly string[];
  readonly onChange: (targets: string[]) => void;
  readonly error?: string | undefined;
};

/** Beginnings of targets, with what follows them. */
const kinds = ["all", "topic:", "user:", "device:", "metadata:", "identifiers:", "condition:", "token:"];

/** Who gets it: completed from the project's topics; the dry run says what is wrong with the rest. */
export const Targets = ({ value, onChange, error }: Props) => {
  const { id, herald } = useProject();
  const [search, setSearch] = useState("");
  const [opened, setOpened] = useState(false);
  const topics = useQuery({
    queryKey: [id, "topics", "names"],
    queryFn: () => herald.topics.list({ perPage: 100 }).page(),
    placeholderData: keepPreviousData,
    staleTime: 30_000,
  });
  const names = topics.data?.data.map(({ name }) => `topic:${name}`) ?? [];
  const isBeginning = (target: string) => target.endsWith(":");
  return (
    <TagsInput
      label={composeTexts.targets}
      description={composeTexts.targetsHint}
      inputWrapperOrder={["label", "input", "error", "description"]}
      placeholder={value.length === 0 ? composeTexts.targetsPlaceholder : undefined}
      value={[...value]}
      onChange={(targets) => {
        const beginning = targets.find((target) => !value.includes(target) && isBeginning(target));
        // A beginning goes back into the field, where its end is typed.
        if (beginning !== undefined) {
          setTimeout(() => setSearch(beginning));
          return;
        }
        // It would cover what comes next.
        setTimeout(() => setOpened(false));
        onChange(targets.map((target) => target.trim()).filter((target) => target !== ""));
      }}
      searchValue={search}
      onSearchChange={setSearch}
      data={[...kinds.slice(0, 1), ...names, ...kinds.slice(1)]}
      dropdownOpened={opened}
      onDropdownOpen={() => setOpened(true)}
      onDropdownClose={() => setOpened(false)}
      splitChars={[]}
      acceptValueOnBlur
      maxDropdownHeight={280}
      error={error}
      clearable
      clearButtonProps={{ "aria-label": composeTexts.clearTargets }}
    />
  );
};
