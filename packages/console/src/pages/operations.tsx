import { TabbedPage } from "../parts/tabbed-page.tsx";

const tabs = { status: "Status", letters: "Dead letters", operators: "Operators", audit: "Audit log" };

export default function Operations() {
  return <TabbedPage title="Operations" path="/operations" tabs={tabs} />;
}
