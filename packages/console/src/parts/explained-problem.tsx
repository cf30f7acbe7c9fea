import { HeraldError } from "@herald/client";
import { Alert, Button, Text } from "@mantine/core";
import { problemTextOf } from "../api/problem-texts.ts";
import { namedSentences, sentencesOf } from "../api/problems.ts";
import { Folded } from "./folded.tsx";
import { Icon } from "./icon.tsx";

export type ProblemProps = {
  readonly error: unknown;
  readonly onRetry?: (() => void) | undefined;
  /** JSON pointers of the fields that show their own problems. */
  readonly marked?: readonly string[];
};

/** An error in sentences for people. What the API says helps where it names fields; otherwise it waits behind "Details". */
export default function ExplainedProblem({ error, onRetry, marked = [] }: ProblemProps) {
  const slug = error instanceof HeraldError ? error.slug : "internal";
  const { title, next, open = false } = problemTextOf(slug);
  const requestId = error instanceof HeraldError ? error.requestId : undefined;
  const named = slug === "validation-failed" ? namedSentences(error, marked) : sentencesOf(error);
  const isMarked = slug === "validation-failed" && named.length === 0;
  const retryAfter = error instanceof HeraldError ? error.retryAfter : undefined;
  return (
    <Alert icon={<Icon name="warning" />} title={title}>
      <Text>{isMarked ? "Change the marked fields." : retryAfter ? `Try again in ${retryAfter} s.` : next}</Text>
      {open &&
        named.map((sentence) => (
          <Text key={sentence} className="break sentence">
            {sentence}
          </Text>
        ))}
      {(!open || requestId) && (
        <Folded title="Details">
          {!open &&
            named.map((sentence) => (
              <Text key={sentence} className="break">
                {sentence}
              </Text>
            ))}
          {requestId && (
            <Text c="dimmed" className="mono break">
              Request {requestId}
            </Text>
          )}
        </Folded>
      )}
      {onRetry && (
        <Button variant="default" size="xs" mt="xs" onClick={onRetry}>
          Try again
        </Button>
      )}
    </Alert>
  );
}
