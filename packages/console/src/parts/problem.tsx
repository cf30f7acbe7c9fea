import { Alert } from "@mantine/core";
import { lazy, Suspense } from "react";
import { useGone } from "../api/live.tsx";
import { isUnreachable, sentencesOf } from "../api/problems.ts";
import type { ProblemProps } from "./explained-problem.tsx";
import { Icon } from "./icon.tsx";

/** Without the sentences for people, which are loaded only when they are shown. */
const PlainProblem = ({ error }: ProblemProps) => (
  <Alert icon={<Icon name="warning" />} className="break">
    {isUnreachable(error) ? "Herald is unreachable. Check that the gateway is running." : sentencesOf(error).join(" ")}
  </Alert>
);

const ExplainedProblem = lazy(() => import("./explained-problem.tsx").catch(() => ({ default: PlainProblem })));

/** An error for people. Hidden for queries that retry while the shell already shows that Herald is unreachable. */
export const Problem = (props: ProblemProps) => {
  const gone = useGone();
  if (isUnreachable(props.error)) return gone && props.onRetry ? null : <PlainProblem {...props} />;
  return (
    <Suspense>
      <ExplainedProblem {...props} />
    </Suspense>
  );
};
