// The unigram language model of subwords (Kudo 2018, arXiv:1804.10959): of all ways to write a piece as
// tokens, the one with the largest sum of scores, found by the Viterbi algorithm as Hugging Face's tokenizers
// does it. Built once by the tokenizer, then const and called from any thread.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>
#include <vector>

namespace inferd {

class Unigram {
 public:
  // Longer tokens are refused by the tokenizer: a piece takes time in proportion to its length times the
  // longest token.
  static constexpr size_t kMaxTokenBytes = 512;

  Unigram() { bytes_.fill(-1); }

  // Takes a token in. Requires 1 to kMaxTokenBytes bytes of UTF-8 that no other token has, and a finite
  // score.
  void add(std::string_view token, int32_t id, double score);
  // The score of a token that is not taken in, because no text may become it.
  void count_score(double score);
  // What a character becomes that no token covers, at a score 10 below the lowest; a run of them is one.
  void set_unknown(int32_t id) { unknown_ = id; }
  // With all 256 bytes, what was unknown becomes the tokens of its bytes.
  void set_byte(uint8_t byte, int32_t id) { bytes_[byte] = id; }
  // To be called when all is set, before the first encode().
  void finish();

  // Working memory of one caller.
  struct Scratch {
    struct Node {
      double score;    // of the best way to get here
      int32_t id;      // of the token that ends here on that way
      uint32_t bytes;  // its length; 0: nothing ends here
    };
    std::vector<Node> nodes;
    std::vector<int32_t> backwards;
  };

  // Appends the ids of `piece`, valid UTF-8.
  void encode(std::string_view piece, std::vector<int32_t>& out, Scratch& scratch) const;

  int64_t bytes() const;  // of memory held

 private:
  // A trie over bytes: the children of a node are found by hashing (node, byte).
  struct Edge {
    uint32_t node_plus_1 = 0;  // 0: free
    uint32_t child = 0;
    uint8_t byte = 0;
  };
  struct Token {
    int32_t id = -1;  // −1: no token ends at this node
    double score = 0;
  };

  size_t edge_slot(uint32_t node, uint8_t byte) const;
  uint32_t child(uint32_t node, uint8_t byte) const;  // 0: none

  std::vector<Edge> edges_ = std::vector<Edge>(64);    // open addressing, a power of two, at most 2/3 full
  std::vector<Token> tokens_ = std::vector<Token>(1);  // by node; the root is node 0
  std::array<int32_t, 256> bytes_;
  std::optional<int32_t> unknown_;
  double lowest_score_ = std::numeric_limits<double>::infinity();
  bool all_bytes_ = false;
};

}  // namespace inferd
