import { execFileSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";

/**
 * Names that Herald once had, and the field's words for them. Only names: `told` or `silent` in a sentence is plain English. The last
 * entry is about sentences.
 */
const oldWords: readonly (readonly [name: RegExp, better: string])[] = [
  [/\b\w*undertaker\w*|\bbur(?:y|ies|ied|ying|ial)\b|\bbury[A-Z]\w*|\w+-bury\b/i, "dead-letter handler, replayer"],
  [/\bisAway\b|\b(?:bus|database|service)-away\b|\baway\.ts\b/, "unavailable"],
  [/\btell[A-Z]\w*|\w+Told\b|\btold[A-Z]\w*|\btell-story\b|\bannounce[A-Z]\w*/, "event, publish, delivery trace"],
  [/\b(?:re)?deal(?:t?[A-Z]\w*|Batches)\b|\bredeal\w*/, "partition, repartition"],
  [/\b(?:Flight|depart(?:ed|s)?|heed(?:s|ed)?)\b/, "Permit, acquire, onOutcome"],
  [/\bseize\w*|\bpeek[A-Z]\w*/, "claim, read"],
  [/\bsilence[A-Z]\w*|\b(?:const|let|readonly|type) silenced?\b|\bheldUntil\b/, "throttle, blockedUntil"],
  [/\baskGrouped\b|\b[A-Z]\w*Questions?\b|\bQuestions?[A-Z]\w*|\banswer-devices\b/, "request, request handler"],
  [/\baddressee\w*/i, "recipient"],
  [/\bkeepForgetting\b|\bforget-old\b/, "retention"],
  [/\binRounds\b|\binOrder\b/, "retryOnConflict, keyedMutex"],
  [/\bOccasion\b/, "EventContext"],
  [/\b(?:Service)?[Gg]round\b(?!-)|\bServiceParts\b/, "Deps, ServiceDefinition"],
  [
    /\w*Verdict\w*|\bJudge\b|\bcreateJudge\b|\b(?:isJ|j)udge[a-z]*[A-Z]?\w*\(|\b(?:const|let|readonly|type) (?:verdicts?|judged?)\b|\bopenDoor\b/,
    "refusal, result, rules, port",
  ],
  [/\b(?:most|least)[A-Z]\w*|\b(?:MOST|LEAST)_\w+/, "max…, min…"],
  [/\bwhoever\b|\banew\b|\bbec[ao]mes? of\b/i, "the person or process that acts; again; the result"],
];
const exempt = /^(?:CHANGELOG\.md|package-lock\.json|check-words\.ts)$|\.(?:png|ico|woff2?|p12|der|wasm)$/;

const files = execFileSync("git", ["ls-files", "-z", "--cached", "--others", "--exclude-standard", "--deduplicate"]);
let found = 0;
for (const file of String(files).split("\0").filter(Boolean)) {
  if (exempt.test(file) || !existsSync(file)) continue;
  const text = `${file}\n${readFileSync(file, "utf8")}`; // the file's own name is checked too
  for (const [name, better] of oldWords) {
    if (!name.test(text)) continue;
    for (const [index, line] of text.split("\n").entries()) {
      const [old] = name.exec(line) ?? [];
      if (old === undefined) continue;
      found++;
      process.stderr.write(`${file}:${Math.max(index, 1)}: "${old}" is an old word; better: ${better}\n`);
    }
  }
}
if (found > 0) process.exitCode = 1;
