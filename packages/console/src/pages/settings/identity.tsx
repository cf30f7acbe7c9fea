import type { IdentityKey } from "@herald/client";
import { Button, Textarea } from "@mantine/core";
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { admin, useProject } from "../../api/clients.ts";
import { Confirm } from "../../parts/confirm.tsx";
import { FormDialog } from "../../parts/form.tsx";
import { Time } from "../../parts/format.tsx";
import { type Column, List } from "../../parts/list.tsx";
import { Copyable, Empty, Panel } from "../../parts/page.tsx";
import { SecretOnce } from "../../parts/secret.tsx";
import { texts } from "../../texts.ts";

const t = texts.settings.identity;

/** A PEM as it is, a JWK as the object that it is. */
const publicKeyOf = (typed: string): string | Record<string, unknown> =>
  typed.trim().startsWith("{") ? (JSON.parse(typed) as Record<string, unknown>) : typed;

export default function Identity() {
  const { id } = useProject();
  const queries = useQueryClient();
  const [creating, setCreating] = useState(false);
  const [made, setMade] = useState<{ secret: string | undefined }>();
  const [key, setKey] = useState("");
  const refresh = () => void queries.invalidateQueries({ queryKey: [id, "identity-keys"] });
  const query = useQuery({
    queryKey: [id, "identity-keys"],
    queryFn: () => admin.identityKeys.list(id, { perPage: 100 }).page(),
  });
  const columns: readonly Column<IdentityKey>[] = [
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
  ];
  const create = async () => {
    const { secret } = await admin.identityKeys.create(id, key.trim() === "" ? {} : { public_key: publicKeyOf(key) });
    setCreating(false);
    setKey("");
    if (key.trim() === "") setMade({ secret });
    refresh();
  };
  return (
    <Panel flush title={t.title} actions={<Button onClick={() => setCreating(true)}>{t.new}</Button>}>
      <List
        query={query}
        columns={columns}
        keyOf={(row) => row.id}
        label={t.title}
        empty={<Empty title={t.emptyTitle}>{t.empty}</Empty>}
      />
      {creating && (
        <FormDialog title={t.new} verb={t.create} act={create} onClose={() => setCreating(false)}>
          <Textarea
            label={t.publicKey}
            description={t.publicKeyHint}
            value={key}
            onChange={(event) => setKey(event.currentTarget.value)}
            autosize
            minRows={4}
          />
        </FormDialog>
      )}
      {made && <SecretOnce title={t.made} value={made.secret} onClose={() => setMade(undefined)} />}
    </Panel>
  );
}
