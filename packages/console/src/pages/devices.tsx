import type { Device, Pagination } from "@herald/client";
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { useProject } from "../api/clients.ts";
import { usePollMs } from "../api/live.tsx";
import { firstRows } from "../api/rows.ts";
import { ChoiceFilter, TextFilter, useFilters } from "../parts/filters.tsx";
import { List } from "../parts/list.tsx";
import { Empty, Page, Panel } from "../parts/page.tsx";
import { texts } from "../texts/common.ts";
import { deviceTexts } from "../texts/devices.ts";
import { deviceColumns } from "./trace.tsx";

const t = deviceTexts;
/** Devices that match a target are read by key alone, so they are not counted. */
const maxMatching = 200;

export default function Devices() {
  const { id, herald } = useProject();
  const { search, page, setPage } = useFilters();
  const { status, platform, user, match } = search;
  const query = useQuery({
    queryKey: [id, "devices", { status, platform, user, match, page }],
    queryFn: async ({ signal }): Promise<{ data: readonly Device[]; pagination?: Pagination }> =>
      match
        ? firstRows(herald.devices.list({ signal, match, perPage: 100 }), maxMatching)
        : herald.devices.list({ signal, perPage: 25, sort: "-created_at", status, platform, userId: user }).page(page),
    placeholderData: keepPreviousData,
    refetchInterval: usePollMs(),
  });
  const filtered = Boolean(status || platform || user || match);
  return (
    <Page title={texts.nav.devices} name={texts.nav.devices}>
      <Panel
        flush
        filters={
          <>
            <ChoiceFilter name="status" label={t.status} values={["active", "inactive"]} />
            <ChoiceFilter name="platform" label={t.platform} values={["ios", "android", "web"]} />
            <TextFilter name="match" label={t.match} width={260} />
            <TextFilter name="user" label={t.user} width={130} />
          </>
        }
      >
        <List
          query={query}
          columns={deviceColumns(id)}
          keyOf={(row) => row.id}
          label={texts.nav.devices}
          onPage={setPage}
          empty={filtered ? <Empty title={t.emptyFiltered} /> : <Empty title={t.emptyTitle}>{t.empty}</Empty>}
        />
      </Panel>
    </Page>
  );
}
