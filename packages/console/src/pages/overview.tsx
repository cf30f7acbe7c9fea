import { useProject } from "../api/clients.ts";
import { Copyable, Facts, Page, Panel } from "../parts/page.tsx";
import { texts } from "../texts.ts";

export default function Overview() {
  const { id } = useProject();
  return (
    <Page title={texts.nav.overview} name={texts.nav.overview}>
      <Panel title={texts.nav.project}>
        <Facts facts={[[texts.common.id, <Copyable key="id" value={id} />]]} />
      </Panel>
    </Page>
  );
}
