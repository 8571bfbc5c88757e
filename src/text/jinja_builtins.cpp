#include "text/jinja_builtins.h"

#include <array>
#include <ctime>

#include "text/jinja_operators.h"
#include "text/jinja_print.h"

namespace inferd::jinja {
namespace {

Result<Value> make_range(Runtime& runtime, const Arguments& arguments) {
  INFERD_TRY(const Bound bound, Bound::bind(arguments, {"range()", 1, {"", "", ""}}));
  auto& range = runtime.make<RangeObject>();
  INFERD_TRY(range.start, bound.whole(0, 0));
  if (bound.has(1)) {
    INFERD_TRY(range.stop, bound.whole(1, 0));
    INFERD_TRY(range.step, bound.whole(2, 1));
  } else {
    range.stop = std::exchange(range.start, 0);
  }
  if (range.step == 0) return run_error("range() with a step of zero");
  if (range.size() > kMaxRange) {
    return Error{.code = Code::template_budget,
                 .detail = cat("a range of ", with_commas(range.size()), " items, ", with_commas(kMaxRange),
                               " allowed")};
  }
  return Value(Kind::range, &range);
}

// dict(mapping or pairs, name=value ...)
Result<DictObject*> new_dict(Runtime& runtime, const Arguments& arguments, std::string_view callee) {
  if (arguments.positional.size() > 1) return run_error(cat(callee, " takes at most one argument by place"));
  auto& dict = runtime.make<DictObject>();
  if (!arguments.positional.empty()) {
    const Value& source = arguments.positional[0];
    if (source.is(Kind::dict)) {
      INFERD_TRY_STATUS(runtime.admit_items(source.as<DictObject>().entries.size()));
      dict.entries = source.as<DictObject>().entries;
    } else {
      INFERD_TRY(Cursor cursor, Cursor::over(source));
      for (Value item;;) {
        INFERD_TRY(const bool more, cursor.next(runtime, item));
        if (!more) break;
        INFERD_TRY(std::vector<Value> pair, items_of(runtime, item));
        if (pair.size() != 2) return run_error(cat(callee, " needs pairs, got ", pair.size(), " items"));
        INFERD_TRY_STATUS(put_entry(runtime, dict, std::move(pair[0]), std::move(pair[1])));
      }
    }
  }
  for (const auto& [name, value] : arguments.named) {
    INFERD_TRY_STATUS(put_entry(runtime, dict, Value(Text::borrowed(name, Origin::markup)), value));
  }
  return &dict;
}

Result<Value> make_dict(Runtime& runtime, const Arguments& arguments) {
  INFERD_TRY(DictObject* const dict, new_dict(runtime, arguments, "dict()"));
  return Value(Kind::dict, dict);
}

Result<Value> make_namespace(Runtime& runtime, const Arguments& arguments) {
  INFERD_TRY(const DictObject* const dict, new_dict(runtime, arguments, "namespace()"));
  auto& space = runtime.make<NamespaceObject>();
  for (const auto& [key, value] : dict->entries) {
    if (!key.is(Kind::text)) return run_error("namespace() needs names as keys");
    space.members.emplace_back(key.text(), value);
  }
  return Value(Kind::space, &space);
}

Result<Value> make_cycler(Runtime& runtime, const Arguments& arguments) {
  if (!arguments.named.empty() || arguments.positional.empty()) return run_error("cycler() needs items");
  auto& cycler = runtime.make<CyclerObject>();
  cycler.items = arguments.positional;
  return Value(Kind::cycler, &cycler);
}

Result<Value> make_joiner(Runtime& runtime, const Arguments& arguments) {
  INFERD_TRY(const Bound bound, Bound::bind(arguments, {"joiner()", 0, {"sep"}}));
  auto& joiner = runtime.make<JoinerObject>();
  joiner.separator = bound.has(0) ? bound[0] : Value(Text::borrowed(", ", Origin::markup));
  return Value(Kind::joiner, &joiner);
}

Result<Value> raise_exception(Runtime& runtime, const Arguments& arguments) {
  INFERD_TRY(const Bound bound, Bound::bind(arguments, {"raise_exception()", 1, {"message"}}));
  INFERD_TRY(const Text message, to_text(runtime, bound[0]));
  return Error{.code = Code::template_raise, .detail = std::string(message.view())};
}

// The conversions of C's strftime, one at a time, so that a hostile width cannot make it write much.
Result<Value> now_as_text(Runtime& runtime, const Arguments& arguments) {
  INFERD_TRY(const Bound bound, Bound::bind(arguments, {"strftime_now()", 1, {"format"}}));
  INFERD_TRY(const Text format, bound.text(0, ""));
  const std::string_view view = format.view();
  const std::tm now = runtime.now();
  TextBuilder builder;
  size_t copied = 0;
  for (size_t at = view.find('%'); at != std::string_view::npos; at = view.find('%', copied)) {
    builder.append(format.slice(copied, at));
    size_t end = at + 1;
    if (end < view.size() && std::string_view("-_0^#").find(view[end]) != std::string_view::npos) ++end;
    static constexpr std::string_view kKnown = "aAbBcCdDeFgGhHIjklmMnprRStTuUVwWxXyY%";
    if (end == view.size() || kKnown.find(view[end]) == std::string_view::npos) {
      if (end < view.size() && (view[end] == 'z' || view[end] == 'Z')) {  // nothing: the time has no zone
        copied = end + 1;
        continue;
      }
      return run_error(cat("strftime_now: ", printable(view.substr(at, end + 1 - at)), " is not supported"));
    }
    if (!runtime.spend(4)) return runtime.exhausted();
    char buffer[128];
    const size_t length =
        std::strftime(buffer, sizeof buffer, std::string(view.substr(at, end + 1 - at)).c_str(), &now);
    builder.append(std::string_view(buffer, length),
                   format.origin() == Origin::data ? Origin::data : Origin::markup);
    copied = end + 1;
  }
  builder.append(format.slice(copied, view.size()));
  INFERD_TRY(Text text, runtime.finish(std::move(builder)));
  return Value(std::move(text));
}

constexpr auto kBuiltins = std::to_array<Builtin>({
    {"cycler", make_cycler},
    {"dict", make_dict},
    {"joiner", make_joiner},
    {"namespace", make_namespace},
    {"raise_exception", raise_exception},
    {"range", make_range},
    {"strftime_now", now_as_text},
});

}  // namespace

const Builtin* find_builtin(std::string_view name) {
  for (const Builtin& builtin : kBuiltins) {
    if (builtin.name == name) return &builtin;
  }
  return nullptr;
}

Value call_joiner(JoinerObject& joiner) {
  return std::exchange(joiner.used, true) ? joiner.separator : Value(Text());
}

}  // namespace inferd::jinja
