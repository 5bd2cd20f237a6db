#include "server/catalog/filter.h"

#include <cmath>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace sliceplan::catalog {

struct Filter::Node {
  enum class Kind { kAnd, kOr, kNot, kTerm };
  enum class Operator { kEqual, kNotEqual, kLess, kLessOrEqual, kGreater, kGreaterOrEqual, kHas };

  Kind kind = Kind::kTerm;
  std::vector<std::unique_ptr<Node>> children;
  // A term.
  std::string field;
  Operator op = Operator::kEqual;
  std::string text;  // lower case
  std::optional<double> number;
  std::optional<bool> boolean;
  bool is_any = false;  // the bare value *
};

namespace {

using Node = Filter::Node;
using NodePointer = std::unique_ptr<Node>;
using Operator = Node::Operator;

struct OperatorName {
  absl::string_view text;
  Operator op;
};
// Longer ones first.
constexpr OperatorName kOperators[] = {{"<=", Operator::kLessOrEqual}, {">=", Operator::kGreaterOrEqual},
                                       {"!=", Operator::kNotEqual},    {"=", Operator::kEqual},
                                       {"<", Operator::kLess},         {">", Operator::kGreater},
                                       {":", Operator::kHas}};

class Parser {
 public:
  explicit Parser(absl::string_view text) : text_(text) {}

  absl::StatusOr<NodePointer> Parse() {
    NodePointer root = ParseExpression(0);
    SkipBlanks();
    if (error_.empty() && position_ < text_.size()) Fail("expected the end");
    if (!error_.empty()) {
      return absl::InvalidArgumentError(absl::StrCat("character ", error_position_ + 1, ": ", error_));
    }
    return root;
  }

 private:
  // Keeps the first error.
  void Fail(absl::string_view what) {
    if (!error_.empty()) return;
    error_ = std::string(what);
    error_position_ = position_;
  }
  bool ok() const { return error_.empty(); }

  void SkipBlanks() {
    while (position_ < text_.size() && absl::ascii_isspace(static_cast<unsigned char>(text_[position_]))) ++position_;
  }
  static bool IsWordCharacter(char c) {
    return !absl::ascii_isspace(static_cast<unsigned char>(c)) && absl::ascii_isprint(static_cast<unsigned char>(c)) &&
           !absl::StrContains("()<>=!:\"',", c);
  }
  absl::string_view PeekWord() const {
    size_t end = position_;
    while (end < text_.size() && IsWordCharacter(text_[end])) ++end;
    return text_.substr(position_, end - position_);
  }
  bool TakeWord(absl::string_view word) {
    SkipBlanks();
    if (PeekWord() != word) return false;
    position_ += word.size();
    return true;
  }
  bool TakeCharacter(char c) {
    SkipBlanks();
    if (position_ >= text_.size() || text_[position_] != c) return false;
    ++position_;
    return true;
  }

  static NodePointer Join(Node::Kind kind, std::vector<NodePointer> parts) {
    if (parts.size() == 1) return std::move(parts.front());
    auto node = std::make_unique<Node>();
    node->kind = kind;
    for (NodePointer& part : parts) node->children.push_back(std::move(part));
    return node;
  }

  // expression: factors joined by AND or side by side
  NodePointer ParseExpression(size_t depth) {
    if (depth > kMaxFilterDepth) {
      Fail(absl::StrCat("more than ", kMaxFilterDepth, " levels"));
      return nullptr;
    }
    std::vector<NodePointer> factors;
    while (ok()) {
      factors.push_back(ParseFactor(depth));
      if (TakeWord("AND")) continue;
      SkipBlanks();
      if (position_ >= text_.size() || text_[position_] == ')') break;
    }
    return ok() ? Join(Node::Kind::kAnd, std::move(factors)) : nullptr;
  }

  // factor: terms joined by OR
  NodePointer ParseFactor(size_t depth) {
    std::vector<NodePointer> terms;
    do {
      terms.push_back(ParseTerm(depth));
    } while (ok() && TakeWord("OR"));
    return ok() ? Join(Node::Kind::kOr, std::move(terms)) : nullptr;
  }

  NodePointer ParseTerm(size_t depth) {
    if (TakeWord("NOT") || TakeCharacter('-')) {
      auto node = std::make_unique<Node>();
      node->kind = Node::Kind::kNot;
      NodePointer inner = ParseSimple(depth);
      if (!ok()) return nullptr;
      node->children.push_back(std::move(inner));
      return node;
    }
    return ParseSimple(depth);
  }

  NodePointer ParseSimple(size_t depth) {
    if (!TakeCharacter('(')) return ParseRestriction();
    NodePointer inner = ParseExpression(depth + 1);
    if (ok() && !TakeCharacter(')')) Fail("expected )");
    return inner;
  }

  NodePointer ParseRestriction() {
    SkipBlanks();
    const absl::string_view field = PeekWord();
    if (field.empty()) {
      Fail("expected a field");
      return nullptr;
    }
    if (field == "AND" || field == "OR" || field == "NOT") {
      Fail(absl::StrCat("expected a field before ", field));
      return nullptr;
    }
    if (++term_count_ > kMaxFilterTerms) {
      Fail(absl::StrCat("more than ", kMaxFilterTerms, " terms"));
      return nullptr;
    }
    auto node = std::make_unique<Node>();
    node->field = std::string(field);
    position_ += field.size();
    SkipBlanks();
    bool has_operator = false;
    for (const OperatorName& candidate : kOperators) {
      if (!absl::StartsWith(text_.substr(position_), candidate.text)) continue;
      node->op = candidate.op;
      position_ += candidate.text.size();
      has_operator = true;
      break;
    }
    if (!has_operator) {
      Fail(absl::StrCat("expected =, !=, <, <=, >, >= or : after ", field));
      return nullptr;
    }
    ParseValue(*node);
    return ok() ? std::move(node) : nullptr;
  }

  void ParseValue(Node& node) {
    SkipBlanks();
    if (position_ < text_.size() && (text_[position_] == '"' || text_[position_] == '\'')) {
      ParseQuoted(node);
      return;
    }
    const absl::string_view word = PeekWord();
    if (word.empty()) {
      Fail("expected a value");
      return;
    }
    position_ += word.size();
    node.text = absl::AsciiStrToLower(word);
    node.is_any = word == "*";
    double number = 0;
    if (absl::SimpleAtod(word, &number) && std::isfinite(number)) node.number = number;
    if (node.text == "true") node.boolean = true;
    if (node.text == "false") node.boolean = false;
  }

  void ParseQuoted(Node& node) {
    const char quote = text_[position_++];
    std::string value;
    while (position_ < text_.size() && text_[position_] != quote) {
      if (text_[position_] == '\\' && ++position_ == text_.size()) break;
      value.push_back(text_[position_++]);
    }
    if (position_ == text_.size()) {
      Fail("the text is not closed");
      return;
    }
    ++position_;
    node.text = absl::AsciiStrToLower(value);
  }

  absl::string_view text_;
  size_t position_ = 0;
  size_t term_count_ = 0;
  std::string error_;
  size_t error_position_ = 0;
};

// Whether `pattern`, in which * stands for any characters, describes the whole of `text`.
bool MatchesPattern(absl::string_view pattern, absl::string_view text) {
  size_t p = 0, t = 0, star = absl::string_view::npos, resume = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      resume = t;
    } else if (p < pattern.size() && pattern[p] == text[t]) {
      ++p;
      ++t;
    } else if (star != absl::string_view::npos) {
      p = star + 1;
      t = ++resume;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

template <typename T>
bool MatchesOrder(Operator op, const T& value, const T& wanted) {
  switch (op) {
    case Operator::kLess: return value < wanted;
    case Operator::kLessOrEqual: return value <= wanted;
    case Operator::kGreater: return value > wanted;
    case Operator::kGreaterOrEqual: return value >= wanted;
    default: return value == wanted;
  }
}

// Whether one value fits; != is asked as =.
bool MatchesValue(const Node& term, const FieldValue& value) {
  const bool is_presence = term.op == Operator::kHas && term.is_any;
  if (const bool* boolean = std::get_if<bool>(&value)) return is_presence || term.boolean == *boolean;
  if (const double* number = std::get_if<double>(&value)) {
    return is_presence || (term.number.has_value() && MatchesOrder(term.op, *number, *term.number));
  }
  const std::string text = absl::AsciiStrToLower(std::get<absl::string_view>(value));
  if (is_presence) return !text.empty();
  switch (term.op) {
    case Operator::kHas: return absl::StrContains(text, term.text);
    case Operator::kEqual:
    case Operator::kNotEqual: return MatchesPattern(term.text, text);
    default: return MatchesOrder(term.op, text, term.text);
  }
}

bool MatchesNode(const Node& node, FieldReader read) {
  switch (node.kind) {
    case Node::Kind::kAnd:
      for (const auto& child : node.children) {
        if (!MatchesNode(*child, read)) return false;
      }
      return true;
    case Node::Kind::kOr:
      for (const auto& child : node.children) {
        if (MatchesNode(*child, read)) return true;
      }
      return false;
    case Node::Kind::kNot: return !MatchesNode(*node.children.front(), read);
    case Node::Kind::kTerm: break;
  }
  bool any = false;
  read(node.field, [&](const FieldValue& value) { any = any || MatchesValue(node, value); });
  return node.op == Operator::kNotEqual ? !any : any;
}

absl::Status CheckNode(const Node& node, Filter::TypeOf type_of) {
  for (const auto& child : node.children) {
    if (absl::Status status = CheckNode(*child, type_of); !status.ok()) return status;
  }
  if (node.kind != Node::Kind::kTerm) return absl::OkStatus();
  const bool is_name = (node.op == Operator::kEqual || node.op == Operator::kNotEqual) && !node.text.empty() &&
                       !absl::StrContains(node.text, '*');
  const absl::StatusOr<FieldType> type = type_of(node.field, is_name ? node.text : absl::string_view());
  if (!type.ok()) return type.status();
  if (node.op == Operator::kHas && node.is_any) return absl::OkStatus();
  const bool is_order = node.op != Operator::kEqual && node.op != Operator::kNotEqual && node.op != Operator::kHas;
  if (*type == FieldType::kBool && (!node.boolean.has_value() || is_order)) {
    return absl::InvalidArgumentError(absl::StrCat(node.field, " is true or false"));
  }
  if (*type == FieldType::kNumber && !node.number.has_value()) {
    return absl::InvalidArgumentError(absl::StrCat(node.field, " is a number, without quotes"));
  }
  return absl::OkStatus();
}

void ReplaceTexts(Node& node, Filter::Replacement replacement) {
  for (const auto& child : node.children) ReplaceTexts(*child, replacement);
  const bool is_name = node.op == Operator::kEqual || node.op == Operator::kNotEqual;
  if (node.kind != Node::Kind::kTerm || !is_name || absl::StrContains(node.text, '*')) return;
  if (const std::optional<std::string> text = replacement(node.field, node.text)) {
    node.text = absl::AsciiStrToLower(*text);
  }
}

}  // namespace

Filter::Filter() = default;
Filter::Filter(Filter&&) noexcept = default;
Filter& Filter::operator=(Filter&&) noexcept = default;
Filter::~Filter() = default;

absl::StatusOr<Filter> Filter::Parse(absl::string_view text) {
  Filter filter;
  if (text.size() > kMaxFilterLength) {
    return absl::InvalidArgumentError(absl::StrCat("longer than ", kMaxFilterLength, " bytes"));
  }
  if (absl::StripAsciiWhitespace(text).empty()) return filter;
  absl::StatusOr<NodePointer> root = Parser(text).Parse();
  if (!root.ok()) return root.status();
  filter.root_ = *std::move(root);
  return filter;
}

absl::Status Filter::Check(TypeOf type_of) const {
  return root_ == nullptr ? absl::OkStatus() : CheckNode(*root_, type_of);
}

void Filter::Replace(Replacement replacement) {
  if (root_ != nullptr) ReplaceTexts(*root_, replacement);
}

bool Filter::Matches(FieldReader read) const { return root_ == nullptr || MatchesNode(*root_, read); }

}  // namespace sliceplan::catalog
