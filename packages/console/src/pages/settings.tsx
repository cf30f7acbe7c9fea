import { TabbedPage } from "../parts/tabbed-page.tsx";
import { texts } from "../texts/common.ts";
import { settingsTexts } from "../texts/settings.ts";

export default function Settings() {
  return <TabbedPage title={texts.nav.settings} path="/settings" tabs={settingsTexts.tabs} />;
}
