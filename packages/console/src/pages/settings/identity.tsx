import type { IdentityKey } from "@herald/client";
import { Textarea } from "@mantine/core";
import { useState } from "react";
import { admin, useProject } from "../../api/clients.ts";
import { Confirm } from "../../parts/confirm.tsx";
import { FormDialog } from "../../parts/form.tsx";
import { Time } from "../../parts/format.tsx";
import { ManagedList, type NewProps } from "../../parts/managed-list.tsx";
import { Copyable } from "../../parts/page.tsx";
import { texts } from "../../texts/common.ts";
import { settingsTexts } from "../../texts/settings.ts";

const t = settingsTexts.identity;

/** A PEM as it is, a JWK as the object that it is; the API says what is wrong with anything else. */
const publicKeyOf = (typed: string): string | Record<string, unknown> => {
  try {
    const parsed: unknown = JSON.parse(typed);
    return typeof parsed === "object" && parsed !== null ? (parsed as Record<string, unknown>) : typed;
  } catch {
    return typed;
  }
};

const NewKey = ({ onClose, onMade }: NewProps) => {
  const { id } = useProject();
  const [key, setKey] = useState("");
  const create = async () => {
    const isOurs = key.trim() === "";
    const { secret } = await admin.identityKeys.create(id, isOurs ? {} : { public_key: publicKeyOf(key) });
    onMade(isOurs ? { secret } : undefined);
  };
  return (
    <FormDialog title={t.new} verb={t.create} act={create} onClose={onClose}>
      <Textarea
        label={t.publicKey}
        description={t.publicKeyHint}
        value={key}
        onChange={(event) => setKey(event.currentTarget.value)}
        autosize
        minRows={4}
        maxRows={12}
        spellCheck={false}
        data-autofocus
      />
    </FormDialog>
  );
};

export default function Identity() {
  const { id } = useProject();
  return (
    <ManagedList<IdentityKey>
      title={t.title}
      queryKey={[id, "identity-keys"]}
      load={(page) => admin.identityKeys.list(id, { perPage: 100 }).page(page)}
      keyOf={(row) => row.id}
      empty={{ title: t.emptyTitle, text: t.empty }}
      add={{ label: t.new, Form: NewKey, made: t.made }}
      columns={({ refresh }) => [
        { title: texts.common.id, cell: (row) => <Copyable value={row.id} /> },
        { title: t.algorithm, cell: (row) => row.algorithm },
        { title: texts.common.created, wide: true, cell: (row) => <Time at={row.created_at} /> },
        {
          title: "",
          right: true,
          cell: (row) => (
            <Confirm
              label={texts.common.delete}
              title={t.deleteTitle}
              verb={t.deleteVerb}
              act={() => admin.identityKeys.delete(id, row.id)}
              onDone={refresh}
            >
              {t.deleteText}
            </Confirm>
          ),
        },
      ]}
    />
  );
}
