import { TabbedPage } from "../parts/tabbed-page.tsx";
import { texts } from "../texts.ts";

export default function Operations() {
  return <TabbedPage title={texts.nav.operations} path="/operations" tabs={texts.operations.tabs} />;
}
