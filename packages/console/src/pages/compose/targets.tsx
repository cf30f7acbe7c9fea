import { TagsInput } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { useProject } from "../../api/clients.ts";
import { firstRows } from "../../api/read.ts";

type Props = {
  readonly value: readonly string[];
  readonly onChange: (targets: string[]) => void;
  readonly error?: string | undefined;
};

/** The kinds of targets that the field suggests; after a colon the user types the rest. */
const kinds = ["all", "topic:", "user:", "device:", "metadata:", "identifiers:", "condition:", "token:"];

const maxCompletions = 20;
const typingMs = 150;

/** Topics and users that begin with the typed text. `topic:` may be left out. */
const useCompletions = (typed: string): readonly string[] => {
  const { id, herald } = useProject();
  const [search] = useDebouncedValue(typed, typingMs);
  const [, kind = "topic", prefix = ""] = /^(?:(topic|user):)?(.*)$/.exec(search) ?? [];
  const options = { prefix: prefix === "" ? undefined : prefix, perPage: maxCompletions + 1 };
  const { data } = useQuery({
    queryKey: [id, `${kind}s`, "completions", prefix],
    queryFn: async ({ signal }) => {
      if (kind === "user") {
        const users = await firstRows(herald.users.list({ signal, ...options }), maxCompletions);
        return users.data.map(({ user_id }) => `user:${user_id}`);
      }
      const topics = await firstRows(herald.topics.list({ signal, ...options }), maxCompletions);
      return topics.data.map(({ name }) => `topic:${name}`);
    },
    // Conditions, metadata and other targets have no completions.
    enabled: kind === "user" || /^[\w.~-]*$/.test(prefix),
    placeholderData: keepPreviousData,
    staleTime: 30_000,
  });
  return data ?? [];
};

/** The field for targets. It completes topics and users; errors in other targets come from the dry run. */
export const Targets = ({ value, onChange, error }: Props) => {
  const [search, setSearch] = useState("");
  const [opened, setOpened] = useState(false);
  const names = useCompletions(search);
  const isBeginning = (target: string) => target.endsWith(":");
  return (
    <TagsInput
      label="Targets"
      description="Each target selects a set of devices. A device in several sets gets the notification once. Press Enter after each target."
      placeholder={
        value.length === 0
          ? "all, topic:news, user:u_17, condition:'news' in topics && metadata.plan == 'pro'"
          : undefined
      }
      value={[...value]}
      onChange={(targets) => {
        const beginning = targets.find((target) => !value.includes(target) && isBeginning(target));
        // A kind such as `user:` goes back into the field, for the user to complete it.
        if (beginning !== undefined) {
          setTimeout(() => setSearch(beginning));
          return;
        }
        // An open dropdown would cover the next fields.
        setTimeout(() => setOpened(false));
        onChange(targets.map((target) => target.trim()).filter((target) => target !== ""));
      }}
      searchValue={search}
      onSearchChange={(text) => {
        setSearch(text);
        if (text !== "") setOpened(true);
      }}
      data={[...kinds.slice(0, 1), ...names, ...kinds.slice(1)]}
      dropdownOpened={opened}
      onDropdownOpen={() => setOpened(true)}
      onDropdownClose={() => setOpened(false)}
      splitChars={[]}
      acceptValueOnBlur
      maxDropdownHeight={280}
      error={error}
      clearable
      clearButtonProps={{ "aria-label": "Remove all targets" }}
    />
  );
};
