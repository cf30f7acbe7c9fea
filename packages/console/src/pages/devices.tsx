import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { useProject } from "../api/clients.ts";
import { usePollMs } from "../api/live.tsx";
import { ChoiceFilter, TextFilter, useFilters } from "../parts/filters.tsx";
import { List } from "../parts/list.tsx";
import { Empty, Page, Panel } from "../parts/page.tsx";
import { texts } from "../texts.ts";
import { deviceColumns } from "./trace.tsx";

const t = texts.devices;

export default function Devices() {
  const { id, herald } = useProject();
  const { search, page, setPage } = useFilters();
  const { status, platform, user } = search;
  const query = useQuery({
    queryKey: [id, "devices", { status, platform, user, page }],
    queryFn: ({ signal }) =>
      herald.devices.list({ signal, perPage: 25, sort: "-created_at", status, platform, userId: user }).page(page),
    placeholderData: keepPreviousData,
    refetchInterval: usePollMs(),
  });
  const filtered = Boolean(status || platform || user);
  return (
    <Page title={texts.nav.devices} name={texts.nav.devices}>
      <Panel
        flush
        title={
          <div className="toolbar">
            <ChoiceFilter name="status" label={t.status} values={["active", "inactive"]} />
            <ChoiceFilter name="platform" label={t.platform} values={["ios", "android", "web"]} />
            <TextFilter name="user" label={t.user} width={130} />
          </div>
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
