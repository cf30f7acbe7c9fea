import { Box } from "@mantine/core";
import { type ReactNode, useState } from "react";

type Props = {
  readonly title: string;
  /** Opens it. It never closes by itself: what opened it may be gone while one types. */
  readonly open?: boolean;
  readonly children: ReactNode;
};

/** Folded under its title, until it is opened. */
export const Folded = ({ title, open = false, children }: Props) => {
  const [wasOpened, setWasOpened] = useState(open);
  if (open && !wasOpened) setWasOpened(true);
  return (
    <details open={wasOpened}>
      <Box component="summary" c="dimmed" fz="sm" lh="24px" py={4} style={{ cursor: "pointer" }}>
        {title}
      </Box>
      <Box mt={6}>{children}</Box>
    </details>
  );
};
