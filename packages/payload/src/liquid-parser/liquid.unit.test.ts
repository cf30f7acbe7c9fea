import { type LiquidProgram, liquidLimits } from "@herald/contracts";
import fc from "fast-check";
import { Liquid } from "liquidjs";
import { describe, expect, test, vi } from "vitest";
import { evaluateLiquid, type LiquidValues, newRoom } from "../liquid/evaluate.ts";
import { LiquidRenderError } from "../liquid/filters.ts";
import { compileLiquid } from "./compile.ts";
import { compileTexts } from "./compile-texts.ts";

/** A nightly job tries the generated templates more often. */
const times = process.env.HERALD_TEST_LONG ? 10 : 1;

const values = {
  name: "Zoë",
  count: 3,
  price: 12.5,
  vip: true,
  off: false,
  zero: 0,
  gap: "",
  at: "2030-01-31T09:05:00Z",
};
const names = new Set(Object.keys(values));

const programOf = (source: string, link = false, allowed: ReadonlySet<string> = names): LiquidProgram => {
  const compiled = compileLiquid(source, { names: allowed, link });
  if ("problem" in compiled) throw new Error(`${source}: ${compiled.problem.message}`);
  // As it arrives over the bus.
  return JSON.parse(JSON.stringify(compiled.program));
};
const render = (source: string, given: LiquidValues = values, locale = "en"): string =>
  evaluateLiquid(programOf(source), given, locale);
const problemOf = (source: string) => {
  const compiled = compileLiquid(source, { names });
  if (!("problem" in compiled)) throw new Error(`${source} was accepted`);
  const { line, column, message } = compiled.problem;
  return `${line}:${column} ${message}`;
};

/** Templates as text, of everything that is supported and that LiquidJS has too. */
const templates = (() => {
  const word = fc.constantFrom("a", " ", "Ünï", "{ ", "}", "%", "👩‍🚀", "\n", "x y", "''");
  const text = fc.array(word, { maxLength: 4 }).map((words) => words.join(""));
  const literal = fc.oneof(
    fc.constantFrom('"a"', "'Zoë'", '""', '"  "', "true", "false", "nil", "empty", "blank"),
    fc.integer({ min: -9, max: 99 }).map(String),
    fc.constantFrom("1.5", "0.005", "-2.45", "10.235", '"3"', '"x1"', '"👩‍🚀🙂z"'),
  );
  const operand = fc.oneof({ weight: 2, arbitrary: fc.constantFrom(...names) }, { weight: 1, arbitrary: literal });
  const compared = fc
    .tuple(operand, fc.constantFrom("==", "!=", "<", ">", "<=", ">=", "contains"), operand)
    .map((parts) => parts.join(" "));
  const condition = fc
    .array(fc.tuple(fc.constantFrom("", "not "), fc.oneof(operand, compared)), { minLength: 1, maxLength: 3 })
    .chain((terms) =>
      fc
        .array(fc.constantFrom(" and ", " or "), { minLength: terms.length, maxLength: terms.length })
        .map((glue) => terms.map(([not, term], at) => (at === 0 ? "" : glue[at]) + not + term).join("")),
    );
  const filter = fc.oneof(
    fc.constantFrom("upcase", "downcase", "capitalize", "round", "truncate"),
    fc
      .tuple(fc.constantFrom("append", "prepend", "plus", "minus", "times", "default"), operand)
      .map((p) => p.join(": ")),
    operand.map((length) => `truncate: ${length}`),
    fc.tuple(operand, operand).map(([length, ending]) => `truncate: ${length}, ${ending}`),
    fc.integer({ min: -2, max: 4 }).map((places) => `round: ${places}`),
    operand.map((value) => `default: ${value}, allow_false: true`),
  );
  const chain = fc
    .tuple(fc.oneof({ weight: 3, arbitrary: operand }, condition), fc.array(filter, { maxLength: 3 }))
    .map(([from, filters]) => [from, ...filters].join(" | "));
  const edge = fc.constantFrom("", "-");
  const { list } = fc.letrec<{ list: string; node: string }>((tie) => {
    const inner = tie("list");
    const local = fc.constantFrom("name", "mine");
    return {
      list: fc.array(tie("node"), { maxLength: 2 }).map((nodes) => nodes.join("")),
      node: fc.oneof(
        { maxDepth: 2 },
        text,
        fc.tuple(edge, chain, edge).map(([left, value, right]) => `{{${left} ${value} ${right}}}`),
        fc.tuple(local, chain).map(([key, value]) => `{% assign ${key} = ${value} %}{{ ${key} }}`),
        fc
          .tuple(fc.constantFrom("if", "unless"), condition, inner, condition, inner, inner)
          .map(
            ([tag, one, a, two, b, c]) => `{% ${tag} ${one} %}${a}{% elsif ${two} %}${b}{% else %}${c}{% end${tag} %}`,
          ),
        fc
          .tuple(operand, operand, operand, inner, operand, inner, inner)
          .map(
            ([value, one, other, a, two, b, c]) =>
              `{% case ${value} %}{% when ${one}, ${other} %}${a}{% when ${two} %}${b}{% else %}${c}{% endcase %}`,
          ),
      ),
    };
  });
  return list;
})();

describe("equal to LiquidJS", () => {
  const liquid = new Liquid();
  test("for 1,500 generated templates", () => {
    fc.assert(
      fc.property(templates, (source) => {
        const compiled = compileLiquid(source, { names });
        fc.pre(!("problem" in compiled && compiled.problem.message.startsWith("has more than 200")));
        expect(render(source)).toBe(liquid.parseAndRenderSync(source, values));
      }),
      { numRuns: 1_500 * times },
    );
  });
});

describe("filters of a language", () => {
  const parcels = '{{ n }} {{ n | plural: one: "paczka", few: "paczki", many: "paczek", other: "paczki" }}';
  test.each([
    [1, "1 paczka"],
    [3, "3 paczki"],
    [5, "5 paczek"],
    [22, "22 paczki"],
    [1.5, "1.5 paczki"],
  ])("Polish has four forms: %d", (n, shown) => {
    expect(evaluateLiquid(programOf(parcels, false, new Set(["n"])), { n }, "pl")).toBe(shown);
  });

  test.each([
    [0, "لا"],
    [1, "واحد"],
    [2, "اثنان"],
    [5, "قليل"],
    [11, "كثير"],
    [100, "آخر"],
  ])("Arabic has six: %d", (n, shown) => {
    const source = '{{ n | plural: zero: "لا", one: "واحد", two: "اثنان", few: "قليل", many: "كثير", other: "آخر" }}';
    expect(evaluateLiquid(programOf(source, false, new Set(["n"])), { n }, "ar")).toBe(shown);
  });

  test("Japanese has one", () => {
    const source = '{{ n }}{{ n | plural: one: "？", other: "個" }}';
    for (const n of [0, 1, 7])
      expect(evaluateLiquid(programOf(source, false, new Set(["n"])), { n }, "ja")).toBe(`${n}個`);
  });

  test.each([
    ["{{ price | currency: 'EUR' }}", "de-DE", "12,50 €"],
    ["{{ price | currency: 'JPY' }}", "ja", "￥13"],
    ["{{ 1234567.891 | number }}", "en", "1,234,567.891"],
    ["{{ 1234567.891 | number: 1 }}", "de", "1.234.567,9"],
    ["{{ '7' | number: 2 }}", "en", "7.00"],
    ["{{ at | date }}", "en", "Jan 31, 2030"],
    ["{{ at | date: 'long' }}", "de", "31. Januar 2030"],
    ["{{ '2028-02-29' | date }}", "en", "Feb 29, 2028"],
    ["{{ '2030-01-31T23:30:00.5' | date: 'short', time: 'short' }}", "de", "31.01.30, 23:30"],
    ["{{ at | date: 'short', time: 'short', zone: 'Asia/Tokyo' }}", "de", "31.01.30, 18:05"],
    ["{{ at | date: time: 'short', zone: 'America/New_York' }}", "en", "4:05 AM"],
  ])("%s in %s", (source, locale, shown) => {
    expect(render(source, values, locale).replaceAll(/\s/g, " ")).toBe(shown);
  });

  test.each([
    ["{{ name | date }}", "the filter `date` cannot use `name`: it needs a time such as 2030-01-31T09:00:00Z"],
    ["{{ '+010000-01-01T00:00:00Z' | date }}", 'cannot use "+010000-01-01T00:00:00Z": it needs a time'],
    ["{{ at | date: 'tiny' }}", 'cannot use "tiny": it needs one of the styles full, long'],
    ["{{ at | date: time: name }}", "cannot use `name`: it needs one of the styles full, long"],
    ["{{ at | date: zone: 'Moon/Base' }}", 'cannot use "Moon/Base": it needs an IANA time zone such as Europe/Berlin'],
    ["{{ at | date: zone: '+02:00' }}", "it needs an IANA time zone"],
    ["{{ name | number }}", "the filter `number` cannot use `name`: it needs a number"],
    ["{{ price | number: 200 }}", "the filter `number` cannot use 200: it needs 0 to 100 decimal places"],
    [
      "{{ price | currency: name }}",
      "the filter `currency` cannot use `name`: it needs a code of ISO 4217 such as EUR",
    ],
    ["{{ price | currency: 'EUE' }}", 'the filter `currency` cannot use "EUE"'],
    ["{{ '0x10' | number }}", 'the filter `number` cannot use "0x10"'],
    ["{{ 'order 12' | date }}", 'cannot use "order 12": it needs a time such as 2030-01-31T09:00:00Z'],
    ["{{ '2030-02-30' | date }}", 'cannot use "2030-02-30": it needs a time'],
    ["{{ '2030' | date }}", 'cannot use "2030": it needs a time'],
    ["{{ at | date: zone: 'BST' }}", 'cannot use "BST": it needs an IANA time zone'],
    ["{{ gap | plural: other: 'x' }}", "the filter `plural` cannot use `gap`: it needs a number"],
  ])("%s says what is wrong", (source, message) => {
    expect(() => render(source)).toThrow(message);
  });
});

describe("zones", () => {
  const styles = ["full", "long", "medium", "short"] as const;
  const zones = ["UTC", "Europe/Berlin", "america/new_york", "Asia/Kolkata", "Pacific/Chatham", "Etc/GMT+5"];
  const times = ["2030-01-31T09:05:00Z", "2030-07-31T23:59:59.999Z", "2024-03-10T06:59:00Z"];

  test("are shown as a format of the zone itself shows them", () => {
    for (const locale of ["en", "de", "ar", "ja", "th-u-ca-buddhist"])
      for (const timeZone of zones)
        for (const at of times)
          for (const timeStyle of styles) {
            const source = `{{ at | date: 'full', time: '${timeStyle}', zone: '${timeZone}' }}`;
            const format = new Intl.DateTimeFormat(locale, { dateStyle: "full", timeStyle, timeZone });
            const shown = evaluateLiquid(programOf(source), { at }, locale);
            expect([source, shown]).toEqual([source, format.format(new Date(at))]);
          }
  });

  test("are made into no object of their own, however they are spelled", () => {
    const made = vi.spyOn(Intl, "DateTimeFormat");
    const source = "{{ '2030-01-31' | date: 'short', time: 'short', zone: zone }}";
    const program = programOf(source, false, new Set(["zone"]));
    const render = (zone: string) => evaluateLiquid(program, { zone }, "en");
    render("Europe/Lisbon");
    made.mockClear();
    for (let bits = 0; bits < 2_000; bits++) {
      const spelled = [..."europe/lisbon"].map((letter, at) => ((bits >> at) % 2 ? letter.toUpperCase() : letter));
      expect(render(spelled.join(""))).toBe("1/31/30, 12:00 AM");
    }
    expect(made).not.toHaveBeenCalled();
    made.mockRestore();
  });
});

describe("values", () => {
  test("a shown value that is missing stops the text, unless a default stands in", () => {
    const given = { name: "Zoë" };
    expect(() => render("{{ count }}", given)).toThrow(
      new LiquidRenderError("value-missing", "`count` has no value and no `default`"),
    );
    for (const source of ["{{ count | plus: 1 }}", "{{ name | append: count }}", "{% assign x = count %}{{ x }}"])
      expect(() => render(source, given)).toThrow(LiquidRenderError);
    expect(render("{{ count | default: 'none' }}{% if count %}x{% endif %}", given)).toBe("none");
  });

  test("are own keys alone", () => {
    const path = ["constructor", "name"];
    expect(() => evaluateLiquid({ nodes: [{ output: { from: { path }, filters: [] } }] }, {}, "en")).toThrow(
      LiquidRenderError,
    );
    expect(
      evaluateLiquid(
        { nodes: [{ output: { from: { path }, filters: [{ filter: "default", args: [{ value: "-" }] }] } }] },
        {},
        "en",
      ),
    ).toBe("-");
  });

  test("are percent-encoded in a link, unless the value is the whole link", () => {
    const given = { name: "a/b?c&d é", count: "\ud800" };
    expect(evaluateLiquid(programOf("/o/{{ name }}", true), given, "en")).toBe("/o/a%2Fb%3Fc%26d%20%C3%A9");
    expect(evaluateLiquid(programOf("{{ name }}", true), given, "en")).toBe(given.name);
    expect(evaluateLiquid(programOf("/o/{{ count }}", true), given, "en")).toBe("/o/%EF%BF%BD");
  });

  test("may not make a result of more than 4,096 characters", () => {
    expect(() => render("{{ name | append: name }}", { name: "x".repeat(3_000) })).toThrow(
      "the result of the filter `append` for `name` is longer than 4096 characters",
    );
  });
});

describe("a text ends", () => {
  const outputs = (count: number) => programOf("{{ name }}".repeat(count));

  test("at 4,096 characters, and is not written further", () => {
    expect(evaluateLiquid(outputs(2), { name: "x".repeat(2_048) }, "en")).toHaveLength(4_096);
    const room = newRoom();
    const before = room.left;
    expect(() => evaluateLiquid(outputs(190), { name: "x".repeat(2_049) }, "en", room)).toThrow(
      new LiquidRenderError("payload-too-large", "renders to more than 4096 characters"),
    );
    expect(before - room.left).toBe(2_049);
  });

  test("as a percent-encoded link, too", () => {
    expect(() => evaluateLiquid(programOf("/{{ name }}", true), { name: "ä".repeat(700) }, "en")).toThrow(
      "renders to more than 4096 characters",
    );
  });

  test("where texts that are rendered together have no room left, results of filters included", () => {
    const room = newRoom();
    const upcase = programOf("{% assign a = name | upcase %}".repeat(10));
    expect(() => {
      for (let times = 0; times < 10; times++) evaluateLiquid(upcase, { name: "x".repeat(4_000) }, "en", room);
    }).toThrow(/together have more than 131072 characters/);
  });
});

describe("an output in or before a link's host is refused", () => {
  const link = (source: string) => compileLiquid(source, { names, link: true });
  test.each([
    "https://shop.example{{ name }}",
    "https://{{ name }}.example/",
    "https://shop.example:{{ name }}/",
    "https:{{ name }}",
    "https:/\\{{ name }}/a",
    " HTTPS:///{{ name }}",
    "h{{ name }}",
    "{{ name }}/a",
    "{{ name }} ",
    "//{{ name }}",
    "/\\{{ name }}",
    "app://{{ name }}",
    "app://a{{ name }}",
    "relative{{ name }}",
    "{% if vip %}/{% endif %}{{ name }}",
    "{% if vip %}https://a.example{% else %}/{% endif %}{{ name }}",
    "https://a{% unless vip %}{{ name }}{% endunless %}/",
    "{% assign a = name %}https://{{ a }}/",
    "{% case name %}{% when 'a' %}https:{% when 'b' %}//{{ count }}{% endcase %}",
    "{% case name %}{% when 'a' %}/a{% endcase %}{{ count }}",
  ])("%s", (source) => {
    expect(link(source)).toMatchObject({
      problem: { message: expect.stringMatching(/^\{\{.*\}\} is not accepted in or before the host of a link: write/) },
    });
  });

  test.each([
    "{{ name }}",
    "{{ name | append: '/a' }}",
    "/{{ name }}",
    "/a/{{ name }}",
    "https://shop.example/{{ name }}",
    "https://shop.example?{{ name }}{{ name }}",
    "https://shop.example#{{ name }}",
    "app:{{ name }}",
    "app://open/{{ name }}",
    "mailto:{{ name }}",
    "{% if vip %}https://a.example{% elsif off %}/b{% else %}https://b.example{% endif %}/{{ name }}",
    "{% case name %}{% when 'a' %}https://a.example{% else %}https://b.example{% endcase %}/{{ name }}",
    "{% assign a = name | downcase %}https://shop.example/{{ a }}",
  ])("not in %s", (source) => {
    expect(link(source)).toHaveProperty("program");
  });
});

describe("refused, with the place", () => {
  test.each([
    [
      "{% for x in name %}{% endfor %}",
      "1:1 the tag `for` is not supported or has no place here; there are `if`, `unless`, `case`, `assign`",
    ],
    ["ab\ncd {% include 'x' %}", "2:4 the tag `include` is not supported"],
    ["{% raw %}{% endraw %}", "1:1 the tag `raw` is not supported"],
    ["{% else %}", "1:1 the tag `else` is not supported or has no place here"],
    ["Hi {{ name | strip }}", "1:14 the filter `strip` is not supported"],
    ["Hi {{ nmae }}", "1:7 `nmae` is not among the variables `name`"],
    ["Hi {{ name.size }}", "1:7 `name.size` is not among the variables"],
    ["{{ __proto__ }}", "1:4 `__proto__` is not among the variables"],
    ["{{ device.token }}", "1:4 `device.token` is no value of a device"],
    ["{{ device.metadata.__proto__ }}", "1:4 `device.metadata.__proto__` is no value of a device"],
    ["{{ user.name }}", "1:4 `user.name` is no value of a device"],
    ["{% assign device = 1 %}", "1:1 `device` is not accepted as a name"],
    ["{{ constructor }}", "1:4 `constructor` is not among the variables"],
    ["{{ name['constructor'] }}", "1:4 `name.constructor` is not among the variables"],
    ["{{ name[0] }}", "1:4 name[0] is not supported"],
    ["{{ (1..9) }}", "1:4 (1..9) is not supported"],
    ["{{ name count }}", "1:9 an operator is missing here"],
    ["{{ name and }}", "1:9 `and` needs a value on each side"],
    ["{{ name | append }}", "1:11 the filter `append` takes 1 value, not 0"],
    ["{{ name | upcase: 1 }}", "1:11 the filter `upcase` takes no values, not 1"],
    ["{{ at | date: 'long', zon: 'x' }}", "1:9 the filter `date` takes no `zon:`; it takes `time:`, `zone:`"],
    ["{{ count | plural: one: 'x' }}", "1:12 the filter `plural` needs `other:`"],
    ["{% assign constructor = 1 %}", "1:1 `constructor` is not accepted as a name"],
    ["{% assign __proto__ = 1 %}", "1:1 `__proto__` is not accepted as a name"],
    ["{{ name", '1:1 output "{{ name" not closed'],
    ["x {% if name %}y", "1:3 tag {% if name %} not closed"],
    ["{% if name", '1:1 tag "{% if name" not closed'],
    ["a {% unless nmae %}{% endunless %}", "1:13 `nmae` is not among the variables"],
    ["{{ }}", "1:4 invalid value expression"],
    ["x".repeat(liquidLimits.sourceBytes + 1), "1:1 is longer than 8192 bytes"],
    ["{{ name }}".repeat(201), "1:2001 has more than 200 texts"],
    [`{{ name${" | upcase".repeat(200)} }}`, "has more than 200"],
    ["{% if name %}".repeat(9) + "{% endif %}".repeat(9), "1:105 is nested more than 8 tags deep"],
    [`{% if ${"vip or ".repeat(17)}vip %}{% endif %}`, "`or` is nested more than 16 operators deep"],
    [`{% if ${"not ".repeat(17)}vip %}{% endif %}`, "`not` is nested more than 16 operators deep"],
    ["{{ a".concat("[a".repeat(4_000)), "1:1 "],
  ])("%s", (source, place) => {
    expect(problemOf(source)).toContain(place);
  });

  test("text without Liquid is only text", () => {
    expect(render("50 % {off} } } {")).toBe("50 % {off} } } {");
  });

  test("no source makes the compiler fail otherwise", () => {
    const part = fc.constantFrom(
      "{{",
      "}}",
      "{%",
      "%}",
      "if",
      "name",
      "|",
      ":",
      "'",
      "[",
      "]",
      ".",
      "(",
      "case",
      "when",
      "-",
      " ",
      "unless",
      "1",
    );
    fc.assert(
      fc.property(fc.array(part, { maxLength: 60 }), (parts) => {
        const compiled = compileLiquid(parts.join(""), { names });
        if ("problem" in compiled) return;
        try {
          evaluateLiquid(programOf(parts.join("")), values, "en");
        } catch (error) {
          expect(error).toBeInstanceOf(LiquidRenderError);
        }
      }),
      { numRuns: 1_000 * times },
    );
  });
});

test("sixteen operators within each other are accepted", () => {
  expect(render(`{% if ${"off or ".repeat(16)}vip %}yes{% endif %}`)).toBe("yes");
});

test("texts that are too large together as they are compiled are refused by the largest", () => {
  const texts = (locales: number) => ({
    title: "{{ name }}",
    data: { order: "{{ count }}".repeat(100) },
    localizations: Object.fromEntries(
      Array.from({ length: locales }, (_, at) => [`en-${at}`, { body: "{{ name }}".repeat(at === 2 ? 190 : 150) }]),
    ),
  });
  expect(compileTexts(texts(3), names).problems).toEqual([]);
  expect(compileTexts(texts(9), names).problems).toEqual([
    {
      path: ["localizations", "en-2", "body"],
      message: expect.stringMatching(/^takes \d+ of the \d+ bytes .* at most 65536/),
    },
  ]);
});
