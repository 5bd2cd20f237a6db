// What is wrong with the catalog's files, collected so that all of it is reported at once.
#ifndef SLICEPLAN_SERVER_CATALOG_PROBLEMS_H_
#define SLICEPLAN_SERVER_CATALOG_PROBLEMS_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace sliceplan::catalog {

class Problems {
 public:
  // `record` and `field` may be empty.
  void Add(absl::string_view file, absl::string_view record, absl::string_view field, absl::string_view what);

  bool empty() const { return lines_.empty(); }

  // OK, or INVALID_ARGUMENT with one line per problem, in the order of files; long lists end with a count.
  absl::Status ToStatus() const;

 private:
  std::vector<std::string> lines_;
};

// Reports problems of one record.
class RecordProblems {
 public:
  RecordProblems(Problems& problems, absl::string_view file, std::string record)
      : problems_(problems), file_(file), record_(std::move(record)) {}

  void Add(absl::string_view field, absl::string_view what) { problems_.Add(file_, record_, field, what); }
  void Require(absl::string_view field, bool is_set) {
    if (!is_set) Add(field, "is required");
  }
  // "2026-08-22" or "2026-08".
  void RequireDate(absl::string_view field, absl::string_view date);

 private:
  Problems& problems_;
  absl::string_view file_;
  std::string record_;
};

}  // namespace sliceplan::catalog

#endif  // SLICEPLAN_SERVER_CATALOG_PROBLEMS_H_
