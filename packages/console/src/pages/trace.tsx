import { type Device, HeraldError } from "@herald/client";
import { Button, TextInput } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { type FormEvent, useState } from "react";
import { useProject } from "../api/clients.ts";
import { useFilters } from "../parts/filters.tsx";
import { platformNames, Status, Time } from "../parts/format.tsx";
import { Icon } from "../parts/icon.tsx";
import { type Column, List } from "../parts/list.tsx";
import { Empty, Page, Panel } from "../parts/page.tsx";
import { texts } from "../texts/common.ts";
import { deviceTexts } from "../texts/devices.ts";
import { traceTexts } from "../texts/trace.ts";

const t = traceTexts;

export const deviceColumns = (project: string): readonly Column<Device>[] => [
  {
    title: deviceTexts.device,
    cell: (row) => (
      <Link className="link mono" to={`/p/${project}/devices/${row.id}`}>
        {row.id}
      </Link>
    ),
  },
  { title: deviceTexts.platform, cell: (row) => platformNames[row.platform] ?? row.platform },
  { title: deviceTexts.status, cell: (row) => <Status value={row.status} /> },
  {
    title: deviceTexts.user,
    cell: (row) =>
      row.user_id === null ? (
        <span className="muted">–</span>
      ) : (
        <Link className="link cut list-cut" to={`/p/${project}/users/${encodeURIComponent(row.user_id)}`}>
          {row.user_id}
        </Link>
      ),
  },
  {
    title: deviceTexts.topics,
    wide: true,
    cell: (row) => (
      <span className="cut list-cut">
        {row.topics.length === 0 ? <span className="muted">–</span> : row.topics.join(", ")}
      </span>
    ),
  },
  {
    title: deviceTexts.lastSeen,
    right: true,
    wide: true,
    cell: (row) => <Time at={row.last_seen_at ?? row.updated_at} />,
  },
];

const or404 = async <Value,>(asked: Promise<Value>, otherwise: Value): Promise<Value> =>
  asked.catch((error: unknown) => {
    if (error instanceof HeraldError && (error.status === 404 || error.status === 422)) return otherwise;
    throw error;
  });

export default function Trace() {
  const { id, herald } = useProject();
  const { search, set } = useFilters();
  const wanted = search.find ?? "";
  const [typed, setTyped] = useState(wanted);
  const query = useQuery({
    queryKey: [id, "devices", "find", wanted],
    enabled: wanted !== "",
    queryFn: async (): Promise<{ data: readonly Device[] }> => {
      if (wanted.startsWith("dev_")) {
        const device = await or404<Device | undefined>(herald.devices.get(wanted), undefined);
        if (device) return { data: [device] };
      }
      const [byToken, user] = await Promise.all([
        or404(herald.devices.list({ token: wanted }).page(), undefined),
        or404(herald.users.get(wanted), undefined),
      ]);
      return { data: [...(byToken?.data ?? []), ...(user?.devices ?? [])] };
    },
  });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    set({ find: typed.trim() });
  };
  return (
    <Page title={texts.nav.trace} name={texts.nav.trace} about={t.about}>
      <div className="stack">
        <form onSubmit={submit} className="find" aria-label={t.find}>
          <TextInput
            size="md"
            className="grow"
            aria-label={t.find}
            placeholder={t.find}
            value={typed}
            onChange={(event) => setTyped(event.currentTarget.value)}
            leftSection={<Icon name="trace" />}
            data-autofocus
          />
          <Button type="submit" size="md" disabled={typed.trim() === ""}>
            {t.submit}
          </Button>
        </form>
        {wanted !== "" && (
          <Panel flush title={t.found}>
            <List
              query={query}
              columns={deviceColumns(id)}
              keyOf={(row) => row.id}
              label={t.found}
              empty={<Empty title={t.noneTitle}>{t.none}</Empty>}
            />
          </Panel>
        )}
        {wanted === "" && (
          <Panel>
            <Empty title={t.startTitle}>{t.start}</Empty>
          </Panel>
        )}
      </div>
    </Page>
  );
}
