import { TabbedPage } from "../parts/tabbed-page.tsx";
import { useHasRole } from "../session-context.tsx";

export default function Operations() {
  // Of the installation; admins of a project see its audit rows.
  const hidden = !useHasRole("viewer");
  const tabs = {
    status: { label: "Status", hidden },
    letters: {
      label: "Dead letters",
      hidden,
      role: { needs: "operator", can: "replay messages", everywhere: true },
    },
    operators: { label: "Operators", hidden, role: { needs: "admin", can: "change operators", everywhere: true } },
    audit: { label: "Audit log" },
  } as const;
  return <TabbedPage title="Operations" path="/operations" tabs={tabs} />;
}
