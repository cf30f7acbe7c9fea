import { TabbedPage } from "../parts/tabbed-page.tsx";
import { texts } from "../texts/common.ts";
import { operationsTexts } from "../texts/operations.ts";

export default function Operations() {
  return <TabbedPage title={texts.nav.operations} path="/operations" tabs={operationsTexts.tabs} />;
}
