// Numbers as the sentences of replies say them: three significant digits and a unit. Short results do not allocate.
#ifndef SLICEPLAN_SERVER_PLANNER_WORDS_H_
#define SLICEPLAN_SERVER_PLANNER_WORDS_H_

#include <cstdint>
#include <string>

namespace sliceplan::planner {

// "8,192", "-12".
std::string CountWords(int64_t count);
// "0.0123", "4.2", "850", "12,300", "1.2e+20". Trailing zeros are dropped; what is not finite reads "unknown".
std::string NumberWords(double value);
// A ratio in percent: "18%", "2.5%", "0.04%".
std::string PercentWords(double ratio);
// Decimal units: "512 B", "40.1 GB".
std::string BytesWords(double bytes);
// "12.3 ms", "4.2 s", "7.5 min", "3.1 h", "44 days".
std::string SecondsWords(double seconds);
// "$0.042", "$1.23 million".
std::string UsdWords(double usd);
// "1.2 PFLOP".
std::string FlopsWords(double flops);

}  // namespace sliceplan::planner

#endif  // SLICEPLAN_SERVER_PLANNER_WORDS_H_
