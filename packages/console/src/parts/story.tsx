import { Sentence } from "./format.tsx";

/** The sentences of a delivery trace, in their order. */
export const Story = ({ sentences }: { readonly sentences: readonly string[] }) => (
  <ol className="story">
    {sentences.map((sentence, index) => (
      // biome-ignore lint/suspicious/noArrayIndexKey: a story is told in its order
      <li key={index} className="break">
        <Sentence text={sentence} />
      </li>
    ))}
  </ol>
);
