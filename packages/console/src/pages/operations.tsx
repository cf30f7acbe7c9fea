import { TabbedPage } from "../parts/tabbed-page.tsx";
import { useHasRole } from "../session-context.tsx";

const tabs = { status: "Status", letters: "Dead letters", operators: "Operators", audit: "Audit log" };
const ofInstallation = ["status", "letters", "operators"];

export default function Operations() {
  const hidden = useHasRole("viewer") ? [] : ofInstallation;
  return <TabbedPage title="Operations" path="/operations" tabs={tabs} hidden={hidden} />;
}
