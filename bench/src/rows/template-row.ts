import { Herald } from "@herald/client";
import type { Row } from "../row.ts";
import { costLines } from "../send-lines.ts";
import { type Singles, sendThroughHerald, warmUpHerald } from "../sends.ts";
import { seedTargets, warmUp } from "./direct-row.ts";

const name = "bench";

/** Single sends from a template beside sends with the same texts. */
export const templateRow: Row = {
  name: "template",
  about: "single sends to one `device:` target each, from a template and with the same texts in the request",
  async *measure({ system, sinks, runs, singles: count }) {
    const sink = sinks.apns;
    const targets = await seedTargets(system);
    const token = await system.tokenOf(system.project, "templates");
    const { templates } = new Herald({ url: system.gateway, token });
    await templates.put(name, {
      ...{ title: "Hello", body: "World {{ n }}", link_to: "/hello", ttl: 3_600 },
      variables: { n: { type: "number" } },
    });
    await templates.publish(name);
    const plain: Singles[] = [];
    const templated: Singles[] = [];
    const first = { count: Math.min(warmUp, count), targets };
    await warmUpHerald(system, first);
    await warmUpHerald(system, { ...first, template: name });
    for (let run = 0; run < runs; run++) {
      plain.push(await sendThroughHerald(system, sink, { count, targets }));
      templated.push(await sendThroughHerald(system, sink, { count, targets, template: name }));
    }
    const rates = templated.map(({ perSecond }) => perSecond);
    const plainRates = plain.map(({ perSecond }) => perSecond);
    yield {
      title: "Single sends that do more, beside plain ones: from a template",
      lines: [
        { label: "sends/s", values: rates },
        { label: "plain/s", values: plainRates },
        {
          label: "ratio to plain",
          values: rates.map((rate, run) => rate / (plainRates[run] ?? 1)),
          digits: 2,
          figure: "template",
        },
        ...costLines(templated.map(({ cost }) => cost)),
      ],
    };
  },
};
