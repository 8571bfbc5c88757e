// Templates that mean harm: each is refused, with the right error, before it has used much time or memory.
#include <gtest/gtest.h>

#include <sys/resource.h>
#include <time.h>

#include <iostream>

#include "text/chat_template.h"

namespace inferd {
namespace {

constexpr bool is_instrumented() {
#ifdef __has_feature
#if __has_feature(address_sanitizer)
  return true;
#endif
#endif
  return false;
}

constexpr double kAllowedSeconds = is_instrumented() ? 3 : 0.1;  // an instrumented build is many times slower

// An instrumented build keeps freed memory for a while.
constexpr int64_t kAllowedKib = is_instrumented() ? 1024 * 1024 : 128 * 1024;

// Of this thread: other work on the machine does not count.
double cpu_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

struct Hostile {
  std::string name;
  std::string source;
  Code code;
};

std::string repeat(std::string_view text, int times) {
  std::string out;
  for (int i = 0; i < times; ++i) out += text;
  return out;
}

std::string many_variables() {
  std::string source;
  for (int i = 0; i < 6000; ++i) source += cat("{% set v", i, " = 1 %}");
  return source + "{% for i in range(100000) %}{{ v5999 }}{% endfor %}";
}

std::vector<Hostile> hostile_templates() {
  const Code budget = Code::template_budget;
  const Code run = Code::template_run;
  const Code syntax = Code::template_syntax;
  const std::string space = "{% set ns = namespace(s='x', l=[1], n=0) %}";
  const auto forever = [&](std::string_view body) {
    return space + "{% for i in range(100000) %}" + std::string(body) + "{% endfor %}";
  };
  return {
      {"nested loops", "{% for a in range(100000) %}{% for b in range(100000) %}{% endfor %}{% endfor %}",
       budget},
      {"loops that print", forever("{{ 'x' * 1000 }}"), budget},
      {"a string doubled", forever("{% set ns.s = ns.s + ns.s %}"), budget},
      {"a string doubled by ~", forever("{% set ns.s = ns.s ~ ns.s %}"), budget},
      {"a string doubled by a set block", forever("{% set ns.s %}{{ ns.s }}{{ ns.s }}{% endset %}"), budget},
      {"a string doubled by join", forever("{% set ns.s = [ns.s, ns.s]|join %}"), budget},
      {"a string doubled by replace", forever("{% set ns.s = ns.s.replace('x', 'xx') %}"), budget},
      {"a string doubled by a format", forever("{% set ns.s = '%s%s' % (ns.s, ns.s) %}"), budget},
      {"a string repeated", "{{ 'x' * 1000000000 }}", budget},
      {"a string repeated to 2^63", "{{ 'xy' * 9223372036854775807 }}", budget},
      {"a list repeated", "{{ [0] * 1000000000 }}", budget},
      {"a list repeated to 2^63", "{{ [0, 1] * 9223372036854775807 }}", budget},
      {"a list doubled", forever("{% set ns.l = ns.l + ns.l %}"), budget},
      {"a range too long", "{{ range(1000000000) }}", budget},
      {"a range past 64 bits", "{{ range(-9000000000000000000, 9000000000000000000) }}", budget},
      {"a macro that calls itself", "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", budget},
      {"a macro that calls itself twice",
       "{% macro m(n) %}{% if n %}{{ m(n - 1) }}{{ m(n - 1) }}{% endif %}{% endmacro %}{{ m(60) }}", budget},
      {"two macros that call each other",
       "{% macro a() %}{{ b() }}{% endmacro %}{% macro b() %}{{ a() }}{% endmacro %}{{ a() }}", budget},
      {"a default that calls its macro", "{% macro m(x=m()) %}{% endmacro %}{{ m() }}", budget},
      {"a caller that calls its macro",
       "{% macro m() %}{{ caller() }}{% endmacro %}{% macro n() %}{% call m() %}{{ n() }}{% endcall %}{% "
       "endmacro %}{{ n() }}",
       budget},
      {"a recursive loop over itself", "{% for x in [1] recursive %}{{ loop([1]) }}{% endfor %}", budget},
      {"a deep list printed", forever("{% set ns.l = [ns.l] %}{% if i == 15000 %}{{ ns.l }}{% endif %}"),
       budget},
      {"a deep list as JSON",
       forever("{% set ns.l = [ns.l] %}{% if i == 15000 %}{{ ns.l|tojson }}{% endif %}"), budget},
      {"deep lists compared",
       space + "{% set a = namespace(l=[1]) %}{% for i in range(50000) %}{% set ns.l = [ns.l] %}{% set a.l = "
               "[a.l] %}{% endfor %}{{ ns.l == a.l }}",
       budget},
      {"deep lists ordered",
       space + "{% set a = namespace(l=[1]) %}{% for i in range(9000) %}{% set ns.l = [ns.l] %}{% set a.l = "
               "[a.l] %}{% endfor %}{{ ns.l < a.l }}",
       budget},
      {"a list of itself twice, printed",
       space + "{% for i in range(60) %}{% set ns.l = [ns.l, ns.l] %}{% endfor %}{{ ns.l }}", budget},
      {"a list of itself twice, as JSON",
       space + "{% for i in range(60) %}{% set ns.l = [ns.l, ns.l] %}{% endfor %}{{ ns.l|tojson }}", budget},
      {"a list of itself twice, compared",
       space + "{% set a = namespace(l=[1]) %}{% for i in range(60) %}{% set ns.l = [ns.l, ns.l] %}{% set "
               "a.l = [a.l, a.l] %}{% endfor %}{{ ns.l == a.l }}",
       budget},
      {"a namespace in itself", "{% set ns = namespace() %}{% set ns.self = ns %}{{ ns }}", budget},
      {"a power tower", "{{ 9 ** 9 ** 9 ** 9 }}", run},
      {"a product past 64 bits", forever("{% set ns.n = (ns.n + 3) * 1000003 %}"), run},
      {"a wide % format", "{{ '%1000000000d' % 1 }}", budget},
      {"a wide % format by *", "{{ '%*s' % (1000000000, 'x') }}", budget},
      {"a precise % format", "{{ '%.1000000000f' % 1.5 }}", run},
      {"a wide brace format", "{{ '{:>1000000000}'.format(1) }}", budget},
      {"a precise brace format", "{{ '{:.999999999f}'.format(1.5) }}", run},
      {"fields inside of fields", "{{ '" + repeat("{:", 300) + repeat("}", 300) + "'.format(1) }}", run},
      {"a width past 2^64", "{{ '%99999999999999999999999d' % 1 }}", run},
      {"a wide center", "{{ 'x'|center(1000000000) }}", budget},
      {"a wide indent", "{{ 'a\nb'|indent(1000000000) }}", budget},
      {"a wide ljust", "{{ 'x'.ljust(9223372036854775807) }}", budget},
      {"a wide zfill", "{{ '1'.zfill(9223372036854775807) }}", budget},
      {"wide tabs", "{{ ('\\t' * 100000).expandtabs(1000000000) }}", budget},
      {"a wide JSON indent", "{{ [[[1]]]|tojson(indent=1000000000) }}", budget},
      {"a JSON indent on many lines", "{{ ([[[[[1]]]]] * 1000)|tojson(indent=100000) }}", budget},
      {"long for short", "{{ ('a' * 100000).replace('a', 'b' * 100000) }}", budget},
      {"long between all", "{{ ('a' * 1000000).replace('', 'b' * 1000) }}", budget},
      {"a long separator", "{{ ('a' * 100000)|join('b' * 100000) }}", budget},
      {"a search that backtracks", forever("{{ ('a' * 100000 + 'b') in ('a' * 1000000) }}"), budget},
      {"a search backwards that backtracks", forever("{{ ('a' * 1000000).rfind('b' + 'a' * 100000) }}"),
       budget},
      {"a long split", forever("{{ ('a ' * 100000).split()|length }}"), budget},
      {"a long strip set", forever("{{ ('a' * 500000).strip('b' * 500000 + 'a')|length }}"), budget},
      {"a long reverse", forever("{{ ('é' * 500000)[::-1]|length }}"), budget},
      {"a far index", forever("{{ ('é' * 500000)[400000] }}"), budget},
      {"upper case over and over", forever("{{ ('ß' * 500000)|upper|length }}"), budget},
      {"escapes over and over", forever("{{ ('\\x01' * 400000)|tojson|length }}"), budget},
      {"a list filled up", "{{ [1]|batch(1000000000, 0)|list }}", budget},
      {"slices of nothing", "{{ []|slice(1000000000)|list }}", budget},
      {"a long sort", forever("{{ range(100000)|sort(reverse=true)|first }}"), budget},
      {"a quadratic unique", "{{ range(100000)|unique|list|length }}", budget},
      {"a quadratic dict", "{{ dict(range(100000)|batch(2))|length }}", budget},
      {"a quadratic sum", "{{ ([[0] * 1000] * 1000)|sum(start=[])|length }}", budget},
      {"quadratic groups", forever("{{ ('ab ' * 10000).split()|groupby(0)|length }}"), budget},
      {"lazy on lazy", forever("{% set ns.l = ns.l|map('string')|list + [1] %}"), budget},
      {"many variables", many_variables(), budget},
      {"many namespace members", forever("{% set ns.n = dict(ns.n if i else {}, **{i ~ '': 1}) %}"), budget},
      {"looking ahead in a loop that ended", "{% for x in [1, 2] %}{% set ns.l = loop %}{% endfor %}", run},
      {"a loop kept past its end",
       space + "{% for x in [1, 2] if x %}{% set ns.l = loop %}{% endfor %}{{ ns.l.length }}", run},
      {"a recursive loop kept past its end",
       space + "{% for x in [1] recursive %}{% set ns.l = loop %}{% endfor %}{{ ns.l([1]) }}", run},
      {"a class of a string", "{{ ''.__class__.__mro__[1].__subclasses__() }}", run},
      {"a class by item", "{{ ''['__class__']['__base__'] }}", run},
      {"a class by attr", "{{ (''|attr('__class__')).mro() }}", run},
      {"a class in a format", "{{ '{0.__class__.__mro__}'.format('') }}", run},
      {"a class in a map", "{{ ['']|map(attribute='__class__.__base__')|list }}", run},
      {"globals of a function", "{{ range.__globals__.x }}", run},
      {"globals of a macro", "{% macro m() %}{% endmacro %}{{ m.__globals__.x }}", run},
      {"a changed list", "{{ messages.append(1) }}", run},
      {"a changed dict", "{{ messages[0].update({'role': 'system'}) }}", run},
      {"an include", "{% include '/etc/passwd' %}", syntax},
      {"an import", "{% from 'x' import y %}", syntax},
      {"deep parentheses", "{{ " + repeat("(", 100000) + "1" + repeat(")", 100000) + " }}", syntax},
      {"deep lists", "{{ " + repeat("[", 50000) + repeat("]", 50000) + " }}", syntax},
      {"many nots", "{{ " + repeat("not ", 50000) + "1 }}", syntax},
      {"many signs", "{{ " + repeat("-", 100000) + "1 }}", syntax},
      {"a long sum", "{{ 1" + repeat("+1", 50000) + " }}", syntax},
      {"a long path", "{{ a" + repeat(".a", 50000) + " }}", syntax},
      {"a long filter chain", "{{ a" + repeat("|e", 50000) + " }}", syntax},
      {"a long chain of inline ifs", "{{ " + repeat("1 if 0 else ", 15000) + "1 }}", syntax},
      {"a long chain of calls", "{{ a" + repeat("()", 50000) + " }}", syntax},
      {"deep targets", "{% set " + repeat("(", 50000) + " %}", syntax},
      {"deep blocks", repeat("{% if 1 %}", 10000) + repeat("{% endif %}", 10000), syntax},
      {"deep macros", repeat("{% macro m() %}", 10000), syntax},
      {"a template too long", std::string(300000, 'x'), syntax},
      {"no UTF-8",
       "a\xff"
       "b",
       syntax},
      {"a surrogate", "{{ '\\ud800' }}", syntax},
      {"a number past 64 bits", "{{ 99999999999999999999 }}", syntax},
      {"an open raw block", "{% raw %}" + repeat("{% endra", 20000), syntax},
      {"an open comment", repeat("{#", 100000), syntax},
      {"a wide strftime", "{{ strftime_now('%1000000000d') }}", run},
  };
}

TEST(HostileTemplates, each_is_refused_in_time_and_little_memory) {
  const Json messages = parse_json(R"([{"role":"user","content":"Hello"}])").value();
  for (const Hostile& hostile : hostile_templates()) {
    const double begin = cpu_seconds();
    const auto parsed = ChatTemplate::parse(hostile.source);
    Result<std::vector<TextSpan>> spans = std::vector<TextSpan>();
    if (parsed.ok()) spans = parsed->render(messages, nullptr, nullptr, {}, true);
    const double took = cpu_seconds() - begin;
    const Error* error = !parsed.ok() ? &parsed.error() : !spans.ok() ? &spans.error() : nullptr;
    ASSERT_NE(error, nullptr) << hostile.name;
    EXPECT_EQ(error_row(error->code).name, error_row(hostile.code).name)
        << hostile.name << ": " << error->detail;
    EXPECT_TRUE(error->where.starts_with("chat template line ")) << hostile.name << ": " << error->where;
    EXPECT_LT(error->detail.size(), 300U) << hostile.name;
    EXPECT_LT(took, kAllowedSeconds) << hostile.name << ": " << error->detail;
    std::cout << fixed(took * 1e3, 1) << " ms: " << hostile.name << ": " << error->message() << "\n";
  }
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  EXPECT_LT(usage.ru_maxrss, kAllowedKib);  // the most that any of them had at once
}

}  // namespace
}  // namespace inferd
