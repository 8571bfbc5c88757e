// jinja_seeds FOLDER VECTORS: writes the templates of src/text/testdata/jinja_vectors.jsonl, one a file, as a
// corpus to start jinja_fuzz with.

#include <cstdio>
#include <fstream>

#include "base/json.h"

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: jinja_seeds FOLDER VECTORS\n");
    return 2;
  }
  std::ifstream vectors(argv[2]);
  int number = 0;
  for (std::string line; std::getline(vectors, line);) {
    const auto vector = inferd::parse_json(line);
    if (!vector.ok()) return 1;
    std::ofstream(inferd::cat(argv[1], "/vector-", ++number), std::ios::binary)
        << vector->find("template")->as_string();
  }
  return 0;
}
