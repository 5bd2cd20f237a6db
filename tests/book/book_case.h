// One worked case of the book and the engine's answer to it. tests/data/book_cases.md says how a case reads.
#ifndef SLICEPLAN_TESTS_BOOK_BOOK_CASE_H_
#define SLICEPLAN_TESTS_BOOK_BOOK_CASE_H_

#include <functional>
#include <map>
#include <ostream>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace sliceplan::book {

using Json = nlohmann::json;

struct BookCase {
  std::string id;
  Json given;
  Json expect;
  double tolerance = 0;
};

// gtest prints parameters by value: keep failures short.
inline void PrintTo(const BookCase& book_case, std::ostream* out) { *out << book_case.id; }

// All rows of book_cases.jsonl.
const std::vector<BookCase>& AllCases();

// Puts a case to the engine: from `given` to an object with the keys of `expect`.
using Answer = std::function<Json(const Json& given)>;
using Answers = std::map<std::string, Answer>;

// By chapter, each id once.
Answers RooflineAnswers();
Answers TpuAnswers();
Answers ShardingAnswers();
Answers TransformerAnswers();
Answers TrainingAnswers();
Answers AppliedTrainingAnswers();
Answers InferenceAnswers();
Answers AppliedInferenceAnswers();
Answers ProfilingAnswers();
Answers GpuAnswers();
Answers GpuNetworkAnswers();

// Cases that are no computation, with the reason; nothing in the engine answers them.
const std::map<std::string, std::string>& Facts();
// Cases that a later issue answers, with its number.
const std::map<std::string, int>& Pending();

}  // namespace sliceplan::book

#endif  // SLICEPLAN_TESTS_BOOK_BOOK_CASE_H_
