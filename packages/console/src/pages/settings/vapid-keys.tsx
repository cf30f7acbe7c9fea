import { Button, Table } from "@mantine/core";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { admin, useProject } from "../../api/clients.ts";
import { Confirm } from "../../parts/confirm.tsx";
import { count, Status, Time } from "../../parts/format.tsx";
import { Copyable, Problem } from "../../parts/page.tsx";
import { settingsTexts } from "../../texts/settings.ts";

const t = settingsTexts.vapid;

/** The rotation of Web Push keys: stage the next one, make it current, retire the earlier one when few subscriptions are left. */
export const VapidKeys = () => {
  const { id } = useProject();
  const queries = useQueryClient();
  const refresh = () => void queries.invalidateQueries({ queryKey: [id, "providers"] });
  const { data, error } = useQuery({
    queryKey: [id, "providers", "webpush", "keys"],
    queryFn: () => admin.vapidKeys.list(id),
  });
  const staging = useMutation({ mutationFn: () => admin.vapidKeys.stage(id), onSuccess: refresh });
  if (error) return <Problem error={error} />;
  const hasNext = data?.some(({ status }) => status === "next");
  return (
    <div className="stack">
      <div className="toolbar">
        <strong className="text grow">{t.title}</strong>
        {!hasNext && (
          <Button size="compact-sm" variant="default" loading={staging.isPending} onClick={() => staging.mutate()}>
            {t.stage}
          </Button>
        )}
      </div>
      {staging.error && <Problem error={staging.error} />}
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: scrolls by keyboard */}
      <section className="scroll" aria-label={t.title} tabIndex={0}>
        <Table className="table">
          <Table.Tbody>
            {data?.map((key) => (
              <Table.Tr key={key.id}>
                <Table.Td>
                  <Status value={key.status} />
                </Table.Td>
                <Table.Td style={{ maxWidth: 260 }}>
                  <Copyable value={key.public_key} />
                </Table.Td>
                <Table.Td className="right nowrap">{t.subscriptions(count(key.devices))}</Table.Td>
                <Table.Td className="right wide-only">
                  <Time at={key.current_since ?? key.created_at} />
                </Table.Td>
                <Table.Td className="right">
                  {key.status === "next" && (
                    <Confirm
                      label={t.makeCurrent}
                      title={t.makeCurrentTitle}
                      verb={t.makeCurrent}
                      danger={false}
                      act={() => admin.vapidKeys.makeCurrent(id, key.id)}
                      onDone={refresh}
                    >
                      {t.makeCurrentText}
                    </Confirm>
                  )}
                  {key.status === "earlier" && (
                    <Confirm
                      label={t.retire}
                      title={t.retireTitle}
                      verb={t.retire}
                      act={() => admin.vapidKeys.retire(id, key.id, { force: key.devices > 0 })}
                      onDone={refresh}
                    >
                      {t.retireText(count(key.devices))}
                    </Confirm>
                  )}
                </Table.Td>
              </Table.Tr>
            ))}
          </Table.Tbody>
        </Table>
      </section>
    </div>
  );
};
