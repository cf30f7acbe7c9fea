import { Button } from "@mantine/core";
import { Empty } from "./parts/page.tsx";
import { texts } from "./texts/common.ts";

export const Missing = () => (
  <Empty
    title={texts.errors.notFound}
    action={
      <Button component="a" href="/console/" variant="default">
        {texts.errors.home}
      </Button>
    }
  />
);
