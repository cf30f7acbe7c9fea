import { Button } from "@mantine/core";
import { Empty } from "./parts/page.tsx";

export const Missing = () => (
  <Empty
    title="Page not found"
    action={
      <Button component="a" href="/console/" variant="default">
        Go to the overview
      </Button>
    }
  />
);
