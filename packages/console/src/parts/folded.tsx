import { Box } from "@mantine/core";
import type { ReactNode } from "react";

type Props = { readonly title: string; readonly open?: boolean; readonly children: ReactNode };

/** Folded under its title, until it is opened. */
export const Folded = ({ title, open, children }: Props) => (
  <details open={open}>
    <Box component="summary" c="dimmed" fz="sm" lh="24px" py={4} style={{ cursor: "pointer" }}>
      {title}
    </Box>
    <Box mt={6}>{children}</Box>
  </details>
);
