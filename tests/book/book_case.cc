#include "tests/book/book_case.h"

#include <fstream>

namespace sliceplan::book {

const std::vector<BookCase>& AllCases() {
  static const std::vector<BookCase> cases = [] {
    std::vector<BookCase> read;
    std::ifstream file(std::string(SLICEPLAN_TEST_DATA_DIR) + "/book_cases.jsonl");
    std::string line;
    while (std::getline(file, line)) {
      if (line.empty()) continue;
      const Json row = Json::parse(line);
      read.push_back({row.at("id"), row.at("given"), row.at("expect"), row.at("tolerance")});
    }
    return read;
  }();
  return cases;
}

const std::map<std::string, std::string>& Facts() {
  static const std::map<std::string, std::string> facts = {
      {"roofline.achievable_fraction", "a rule of thumb from measurements; calibration profiles hold such shares"},
      {"sharding.measured_ag_bandwidth", "a measured share of link bandwidth"},
      {"inference.host_memory", "the DRAM of one kind of host, quoted"},
      {"profiling.hlo_shape_bytes", "the notation of an HLO dump: which number names which memory"},
      {"profiling.layer_times", "two measured pairs of layer times"},
      {"profiling.memory_view", "two figures read off a screenshot"},
      {"gpus.l2_ratio", "a measured L2 bandwidth"},
      {"gpus.nvlink.hopper", "node sizes and switch counts of a product line, quoted"},
      {"gpus.nvlink.blackwell", "node sizes and switch counts of a product line, quoted"},
      {"gpus.superpod_counts", "switch counts of one reference design, quoted"},
      {"gpus.c2c", "GPUs per CPU of two products, quoted"},
  };
  return facts;
}

const std::map<std::string, int>& Pending() {
  static const std::map<std::string, int> pending = {};
  return pending;
}

}  // namespace sliceplan::book
