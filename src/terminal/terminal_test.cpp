// The parts of the line editor that need no terminal; the whole of it is tested in tests/chat_test.cpp.
#include <gtest/gtest.h>

#include <sys/stat.h>
#include <unistd.h>
#include <wchar.h>

#include <clocale>
#include <filesystem>
#include <fstream>
#include <random>

#include "base/strings.h"
#include "base/utf8.h"
#include "support/golden.h"
#include "terminal/display_width.h"
#include "terminal/edit_buffer.h"
#include "terminal/history.h"
#include "terminal/key_decoder.h"
#include "terminal/line_layout.h"

namespace inferd {
namespace {

using Rows = std::vector<std::string>;

TEST(DisplayWidth, agrees_with_the_c_library_on_scripts_that_do_not_change_any_more) {
  ASSERT_NE(std::setlocale(LC_CTYPE, "C.UTF-8"), nullptr);
  static constexpr std::pair<char32_t, char32_t> kRanges[] = {
      {0x20, 0x7E},     {0xA1, 0xAC},       {0xAE, 0x377},      {0x400, 0x52F},
      {0x5D0, 0x5EA},   {0x904, 0x939},     {0x1100, 0x115F},   {0x1E00, 0x1EFF},
      {0x3041, 0x3096}, {0x30A1, 0x30FA},   {0x4E00, 0x9FFF},   {0xAC00, 0xD7A3},
      {0xFF01, 0xFFBE}, {0x1F300, 0x1F320}, {0x1F600, 0x1F64F}, {0x20000, 0x2A6DF}};
  for (const auto& [first, last] : kRanges) {
    for (char32_t c = first; c <= last; ++c) {
      ASSERT_EQ(column_width(c), ::wcwidth(static_cast<wchar_t>(c))) << std::hex << static_cast<uint32_t>(c);
    }
  }
  std::setlocale(LC_CTYPE, "C");
}

TEST(DisplayWidth, of_texts) {
  EXPECT_EQ(column_width("abc"), 3);
  EXPECT_EQ(column_width("世界"), 4);
  EXPECT_EQ(column_width("e\u0301"), 1);
  EXPECT_EQ(column_width("\u00AD"), 1);
  EXPECT_EQ(column_width("\x1b\n"), 0);
}

TEST(DisplayWidth, characters_are_what_people_take_for_one) {
  for (const std::string one :
       {"a", "é", "e\u0301", "世", "👍🏽", "🇩🇪", "👩‍👩‍👧", "❤\uFE0F", "\n", "한"}) {
    const std::string text = cat("x", one, "y");
    EXPECT_EQ(next_character(text, 1), 1 + one.size()) << one;
    EXPECT_EQ(previous_character(text, 1 + one.size()), 1u) << one;
  }
  EXPECT_EQ(next_character("🇩🇪🇫🇷", 0), 8u);
  EXPECT_EQ(previous_character("🇩🇪🇫🇷", 16), 8u);
  EXPECT_EQ(next_character("a", 1), 1u);
  EXPECT_EQ(previous_character("a", 0), 0u);
}

TEST(DisplayWidth, nothing_that_moves_a_cursor_is_left) {
  EXPECT_EQ(without_controls("a\x1b[2Jb\r\n\tc\x07\x7f\u009B31m\xff"), "a[2Jb\n\tc31m\uFFFD");
}

std::string name_of(const KeyPress& press) {
  return press.text.empty() ? cat("<", static_cast<int>(press.key), ">") : press.text;
}

std::string decode(const std::string& bytes, size_t piece) {
  KeyDecoder decoder;
  std::string all;
  for (size_t at = 0; at < bytes.size(); at += piece) {
    decoder.push(std::string_view(bytes).substr(at, piece));
    while (const auto press = decoder.next()) all += name_of(*press);
  }
  return all;
}

TEST(KeyDecoder, knows_the_sequences_of_terminals) {
  static const std::vector<std::pair<std::string, Key>> kSequences = {
      {"\x1b[A", Key::up},
      {"\x1bOA", Key::up},
      {"\x1b[B", Key::down},
      {"\x1b[C", Key::right},
      {"\x1b[D", Key::left},
      {"\x1b[H", Key::home},
      {"\x1bOH", Key::home},
      {"\x1b[1~", Key::home},
      {"\x1b[7~", Key::home},
      {"\x1b[F", Key::end},
      {"\x1b[4~", Key::end},
      {"\x1b[8~", Key::end},
      {"\x1b[3~", Key::erase},
      {"\x1b[1;5C", Key::word_right},
      {"\x1b[1;5D", Key::word_left},
      {"\x1b[1;3C", Key::word_right},
      {"\x1b"
       "b",
       Key::word_left},
      {"\x1b"
       "f",
       Key::word_right},
      {"\x1b"
       "d",
       Key::erase_word_right},
      {"\x1b\x7f", Key::erase_word_left},
      {"\x1b\r", Key::new_line},
      {"\x01", Key::home},
      {"\x05", Key::end},
      {"\x0b", Key::erase_to_end},
      {"\x15", Key::erase_to_start},
      {"\x17", Key::erase_word_left},
      {"\x0c", Key::clear_screen},
      {"\x12", Key::search},
      {"\x03", Key::interrupt},
      {"\x04", Key::end_of_input},
      {"\t", Key::complete},
      {"\r", Key::enter},
      {"\n", Key::enter},
      {"\x7f", Key::backspace},
      {"\x08", Key::backspace},
      {"\x19", Key::put_back},
      {"\x1a", Key::suspend},
      {"\x07", Key::cancel},
      {"\x1bOM", Key::enter},
  };
  for (const auto& [bytes, key] : kSequences) {
    KeyDecoder decoder;
    for (const char byte : bytes) {
      ASSERT_FALSE(decoder.next()) << printable(bytes);
      decoder.push({&byte, 1});
    }
    const auto press = decoder.next();
    ASSERT_TRUE(press) << printable(bytes);
    EXPECT_EQ(press->key, key) << printable(bytes);
    EXPECT_FALSE(decoder.pending()) << printable(bytes);
  }
}

TEST(KeyDecoder, text_comes_whole_however_it_was_cut) {
  const std::string bytes = "é\x1b[Cab世\x1b[200~one\r\ntwo\rthree\x1b[1~\x1b[201~\x1b[99;9zc";
  const std::string expected = cat("é<", static_cast<int>(Key::right), ">ab世one\ntwo\nthree\x1b[1~c");
  for (size_t piece = 1; piece <= bytes.size(); ++piece) EXPECT_EQ(decode(bytes, piece), expected) << piece;
}

TEST(KeyDecoder, what_never_becomes_whole_is_given_up) {
  KeyDecoder decoder;
  decoder.push("\x1b");
  EXPECT_FALSE(decoder.next());
  EXPECT_TRUE(decoder.pending());
  decoder.give_up();
  EXPECT_EQ(decoder.next()->key, Key::cancel);
  decoder.push("\xe4\xb8");
  EXPECT_FALSE(decoder.next());
  decoder.give_up();
  EXPECT_EQ(decoder.next()->text, "\uFFFD");
  decoder.push("\x1b[12");
  EXPECT_FALSE(decoder.next());
  decoder.give_up();
  EXPECT_FALSE(decoder.next());
  EXPECT_FALSE(decoder.pending());
}

TEST(KeyDecoder, any_bytes_are_read_to_the_end) {
  std::mt19937 random(7);
  static constexpr std::string_view kLikely = "\x1b[O~0123;\x7f\r\xe4\xb8\x96 ab";
  for (int run = 0; run < 2000; ++run) {
    KeyDecoder decoder;
    for (int i = 0; i < 40; ++i) {
      const char byte = random() % 4 == 0 ? static_cast<char>(random()) : kLikely[random() % kLikely.size()];
      decoder.push({&byte, 1});
      for (auto press = decoder.next(); press; press = decoder.next())
        ASSERT_TRUE(is_valid_utf8(press->text));
    }
    for (int i = 0; i < 50 && decoder.pending(); ++i) {
      decoder.give_up();
      while (decoder.next()) {
      }
    }
    ASSERT_FALSE(decoder.pending());
  }
}

// "|" marks the cursor.
std::string shown(const EditBuffer& buffer) {
  std::string text = buffer.text();
  return text.insert(buffer.cursor(), "|");
}

TEST(EditBuffer, moves_and_erases_by_what_people_see) {
  EditBuffer buffer;
  buffer.insert("one tw\u006F\u0301 世界");
  buffer.left();
  EXPECT_EQ(shown(buffer), "one two\u0301 世|界");
  buffer.backspace();
  EXPECT_EQ(shown(buffer), "one two\u0301 |界");
  buffer.word_left();
  EXPECT_EQ(shown(buffer), "one |two\u0301 界");
  buffer.word_right();
  EXPECT_EQ(shown(buffer), "one two\u0301| 界");
  buffer.backspace();
  EXPECT_EQ(shown(buffer), "one tw| 界");
  buffer.erase_word_left();
  EXPECT_EQ(shown(buffer), "one | 界");
  buffer.end();
  buffer.put_back();
  EXPECT_EQ(shown(buffer), "one  界tw|");
  buffer.home();
  buffer.erase();
  EXPECT_EQ(shown(buffer), "|ne  界tw");
  buffer.erase_word_right();
  EXPECT_EQ(shown(buffer), "|  界tw");
  buffer.right();
  buffer.erase_to_end();
  EXPECT_EQ(shown(buffer), " |");
  buffer.erase_to_start();
  EXPECT_EQ(shown(buffer), "|");
  buffer.backspace();
  buffer.erase();
  buffer.left();
  buffer.right();
  EXPECT_EQ(shown(buffer), "|");
}

TEST(EditBuffer, lines_are_gone_through_at_the_same_column) {
  EditBuffer buffer;
  buffer.set("short\n世界世界\nlonger line");
  EXPECT_TRUE(buffer.up());
  EXPECT_EQ(shown(buffer), "short\n世界世界|\nlonger line");
  buffer.left();
  EXPECT_TRUE(buffer.up());
  EXPECT_EQ(shown(buffer), "short|\n世界世界\nlonger line");
  EXPECT_FALSE(buffer.up());
  EXPECT_TRUE(buffer.down());
  EXPECT_EQ(shown(buffer), "short\n世界|世界\nlonger line");
  buffer.home();
  EXPECT_EQ(shown(buffer), "short\n|世界世界\nlonger line");
  buffer.erase_to_end();
  buffer.erase_to_end();
  EXPECT_EQ(shown(buffer), "short\n|longer line");
  EXPECT_FALSE(buffer.down());
}

TEST(LineLayout, breaks_rows_at_the_terminals_width) {
  const LineLayout plain = lay_out(">>> ", "... ", "abcdef", 6, 10);
  EXPECT_EQ(plain.rows, (Rows{">>> abcdef", ""}));
  EXPECT_EQ(plain.cursor_row, 1u);
  EXPECT_EQ(plain.cursor_column, 0);
  const LineLayout middle = lay_out(">>> ", "... ", "abcdefgh", 2, 10);
  EXPECT_EQ(middle.rows, (Rows{">>> abcdef", "gh"}));
  EXPECT_EQ(middle.cursor_row, 0u);
  EXPECT_EQ(middle.cursor_column, 6);
  // A wide character does not fit the last column.
  const LineLayout wide = lay_out(">>> ", "... ", "abcde世", 5, 10);
  EXPECT_EQ(wide.rows, (Rows{">>> abcde", "世"}));
  EXPECT_EQ(wide.cursor_row, 1u);
  EXPECT_EQ(wide.cursor_column, 0);
}

TEST(LineLayout, shows_lines_tabs_and_control_characters) {
  const LineLayout layout = lay_out("> ", ". ", "a\n\tb\x1b\x7f\u0085", 2, 20);
  EXPECT_EQ(layout.rows, (Rows{"> a", ".     b^[^?\uFFFD"}));
  EXPECT_EQ(layout.cursor_row, 1u);
  EXPECT_EQ(layout.cursor_column, 2);
}

TEST(LineLayout, no_row_is_too_long_and_the_cursor_is_inside) {
  static const Rows kPieces = {"a", "世", "e\u0301", "\n", "\t", "\x01", "👩‍👩‍👧", " "};
  std::mt19937 random(5);
  for (int run = 0; run < 3000; ++run) {
    std::string text;
    for (size_t i = random() % 30; i > 0; --i) text += kPieces[random() % kPieces.size()];
    size_t cursor = 0;
    for (size_t i = random() % 30; i > 0; --i) cursor = next_character(text, cursor);
    const int columns = 8 + static_cast<int>(random() % 20);
    const LineLayout layout = lay_out(">>> ", "... ", text, cursor, columns);
    ASSERT_EQ(layout.rows.size(), layout.widths.size());
    for (size_t row = 0; row < layout.rows.size(); ++row) {
      ASSERT_LE(layout.widths[row], columns);
      ASSERT_EQ(layout.widths[row], column_width(layout.rows[row]));
    }
    ASSERT_LT(layout.cursor_row, layout.rows.size());
    ASSERT_LT(layout.cursor_column, columns);
    ASSERT_LE(layout.cursor_column, layout.widths[layout.cursor_row]);
  }
}

TEST(LineLayout, a_narrower_terminal_has_broken_the_rows) {
  const LineLayout drawn = lay_out(">>> ", "... ", std::string(50, 'x'), 50, 40);  // 40 and 14 columns
  EXPECT_EQ(rows_above_cursor(drawn, 40), 1u);
  EXPECT_EQ(rows_above_cursor(drawn, 80), 1u);
  EXPECT_EQ(rows_above_cursor(drawn, 20), 2u);
  EXPECT_EQ(rows_above_cursor(drawn, 10), 5u);
}

class HistoryTest : public testing::Test {
 protected:
  HistoryTest() : folder_(cat(testing::TempDir(), "inferd-history-", ::getpid())) {}
  ~HistoryTest() override { std::filesystem::remove_all(folder_); }
  std::string path() const { return folder_ + "/state/history"; }
  const std::string folder_;
};

TEST_F(HistoryTest, is_there_again_at_the_next_start) {
  {
    History history(path());
    ASSERT_TRUE(history.load().ok());
    ASSERT_TRUE(history.add(std::string(70000, 'x')).ok());
    EXPECT_EQ(history.entries().size(), 1u);
    for (const char* entry : {"one", "two\nlines", "back\\slash\\n", "back\\slash\\n", " ", "世界"})
      ASSERT_TRUE(history.add(entry).ok());
  }
  History again(path());
  ASSERT_TRUE(again.load().ok());
  EXPECT_EQ(again.entries(), (Rows{"one", "two\nlines", "back\\slash\\n", "世界"}));
  struct stat info{};
  ASSERT_EQ(::stat(path().c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
}

TEST_F(HistoryTest, two_programs_append_to_it_and_it_stays_bounded) {
  History first(path(), 10);
  History second(path(), 10);
  ASSERT_TRUE(first.load().ok());
  ASSERT_TRUE(second.load().ok());
  for (int i = 0; i < 15; ++i) {
    ASSERT_TRUE(first.add(cat("a", i)).ok());
    ASSERT_TRUE(second.add(cat("b", i)).ok());
  }
  History third(path(), 10);
  ASSERT_TRUE(third.load().ok());
  EXPECT_EQ(third.entries(), (Rows{"a10", "b10", "a11", "b11", "a12", "b12", "a13", "b13", "a14", "b14"}));
  EXPECT_EQ(test::read_file(path()), "a10\nb10\na11\nb11\na12\nb12\na13\nb13\na14\nb14\n");
  // The file was replaced: who had it open goes on in the new one.
  ASSERT_TRUE(first.add("last").ok());
  EXPECT_TRUE(test::read_file(path()).ends_with("b14\nlast\n"));
}

TEST_F(HistoryTest, a_file_that_is_none_is_an_error_and_the_chat_goes_on_without) {
  std::filesystem::create_directories(path());
  History history(path());
  const Status loaded = history.load();
  ASSERT_FALSE(loaded.ok());
  EXPECT_EQ(loaded.error().where, path());
  EXPECT_TRUE(history.add("kept here").ok());
  EXPECT_EQ(history.entries(), (Rows{"kept here"}));
}

TEST_F(HistoryTest, a_file_that_others_could_read_is_closed_to_them) {
  std::filesystem::create_directories(folder_ + "/state");
  std::ofstream(path()) << "old\nbad \xff bytes\n";
  std::filesystem::permissions(path(), std::filesystem::perms(0644));
  History history(path());
  ASSERT_TRUE(history.load().ok());
  EXPECT_EQ(history.entries(), (Rows{"old", "bad \uFFFD bytes"}));
  struct stat info{};
  ASSERT_EQ(::stat(path().c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
}

}  // namespace
}  // namespace inferd
