import { TabbedPage } from "../parts/tabbed-page.tsx";
import { texts } from "../texts.ts";

export default function Settings() {
  return <TabbedPage title={texts.nav.settings} path="/settings" tabs={texts.settings.tabs} />;
}
